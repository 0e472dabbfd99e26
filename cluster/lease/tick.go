package lease

import "github.com/claimq/claimq/fsm"

const (
	// tickClaimedAfter bounds the age of U in the state while claims exist, in
	// milliseconds. A change of leader extends a lease by at most this, plus the interval
	// of TickDue checks and the election.
	tickClaimedAfter = 4_000
	// tickIdleAfter is the same while there are no claims, when a tick only drops claim
	// requests and advances the calendar.
	tickIdleAfter = 60_000
)

// TickDue reports whether the state's clocks are so old that the leader should log a tick.
// claims counts its claims of tasks and finalizations. Any entry advances the clocks.
func TickDue(now, state fsm.Stamp, claims int) bool {
	after := int64(tickIdleAfter)
	if claims > 0 {
		after = tickClaimedAfter
	}
	return now.U-state.U >= after
}
