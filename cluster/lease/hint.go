package lease

import (
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// HintInterval is the interval at which a leader checks whether to send its U to the other
	// voters.
	HintInterval = 250 * time.Millisecond
	// hintAfter is the least age of U in the state, in milliseconds, for which a hint is sent,
	// because entries report U, too.
	hintAfter = 50
)

// Hint reports the lease clock of a leader: in that term it had reached U. It is never
// written to disk. Without hints, leases would be longer by the time between the last entry
// and the end of a leadership, which the next leader would not count.
//
// Why U is never faster than real time: let e be an entry in a leader's state, stamped with
// U(e). No clock of that leader ever shows more than U(e) plus the real time since the
// stamping. By induction over the terms:
//
//   - A clock that starts at the state's U starts at the stamp of an entry, the newest one. The properties of the clock that made this
//     stamp still hold.
//   - A clock that starts at a hint starts at a value that the clock of the hint's term has shown in the past, however long the hint was
//     under way. That clock made the newest entry of the state, which StartU ensures. So either e was in its leader's state at its barrier,
//     and what was true of that clock is still true; or e was made by it after the hint, and then U(e) is no less than the hint; or e was
//     made by it before.
//
// A node may begin to lead twice in one term without another leader in between, when a
// backup was restored. The second time it continues at least from its own hints, so for all
// others the two clocks are one.
//
// Without StartU's condition the second case would be wrong: a leader that is cut off
// without knowing it continues from a higher U than its successor, which did not receive
// its last hints, and leases that the successor began would end early by the difference.
// The real time since a hint is never added, because workers cannot extend while there is
// no leader.
type Hint struct {
	Term uint64 `json:"term"`
	U    int64  `json:"u"`
}

// Later returns the hint of the later term or, in the same term, the one with the higher U.
func (h Hint) Later(other Hint) Hint {
	if other.Term > h.Term || other.Term == h.Term && other.U > h.U {
		return other
	}
	return h
}

// Hints holds the latest hint that a node received or sent. It is only in memory. The zero value
// is ready to use.
type Hints struct {
	mu     sync.Mutex
	latest Hint // guarded by mu
}

// Note keeps the hint if it is later than the one held.
func (h *Hints) Note(hint Hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.latest = h.latest.Later(hint)
}

// Latest returns the latest hint, or the zero Hint.
func (h *Hints) Latest() Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

// StartU returns the U at which the leader of term starts: the state's, or a higher one
// from a hint of the leader that stamped the state's newest entry, in newestTerm, or from a
// hint of this term. Other hints are ignored. newestTerm is 0 if unknown.
func StartU(state fsm.Stamp, newestTerm, term uint64, hints ...Hint) int64 {
	u := state.U
	for _, h := range hints {
		if h.Term != 0 && (h.Term == newestTerm || h.Term == term) {
			u = max(u, h.U)
		}
	}
	return u
}

// HintDue reports whether a leader should send its U. claims counts the state's claims of
// tasks and finalizations.
func HintDue(now, state fsm.Stamp, claims int) bool {
	return claims > 0 && now.U-state.U >= hintAfter
}
