package lease

import "github.com/claimq/claimq/fsm"

const (
	// tickClaimedAfter is how old U in the state may be while claims exist, in
	// milliseconds. What a change of leader adds to a lease is at most this, the
	// interval at which TickDue is asked, and the election.
	tickClaimedAfter = 4_000
	// tickIdleAfter is the same while no claim exists: then a tick only forgets
	// claim requests and moves the calendar on.
	tickIdleAfter = 60_000
)

// TickDue reports whether the clocks of a state with so many claims, of tasks and
// of finalizations, have become so old that the leader logs a tick. Any entry
// moves them.
func TickDue(now, state fsm.Stamp, claims int) bool {
	after := int64(tickIdleAfter)
	if claims > 0 {
		after = tickClaimedAfter
	}
	return now.U-state.U >= after
}
