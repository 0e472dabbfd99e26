package lease

import (
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// HintInterval is how often a leader looks whether to tell the others its U.
	HintInterval = 250 * time.Millisecond
	// hintAfter is how old U in the state must be then, in milliseconds: an entry
	// tells it, too.
	hintAfter = 50
)

// Hint is what a leader said of its lease clock: in that term it had come to U.
// It is never written. It spares leases the time from the last entry to the end of
// a leadership, which the next one would not count else.
//
// Why U stays no faster than real time. Let e be an entry that a leader's state has,
// stamped with U(e); it is to be shown that no clock of that leader ever shows more
// than U(e) and the real time since the stamping. By induction over the terms:
//
//   - A clock that starts at the state's U starts at the stamp of an entry, the
//     newest one, and what was true of the clock that made this stamp is true now.
//   - A clock that starts at a hint starts at what the clock of the hint's term
//     showed, before now, however long ago that was told and however long it was on
//     its way. That clock made the newest entry of the state, as StartU sees to. So e
//     was either in its leader's state at its barrier, and what was true of that
//     clock is true now; or made by it after it gave the hint, and then U(e) is
//     no less than the hint; or made by it before.
//
// A node may begin to lead twice in one term, without another one between: when a
// backup was restored. The second time it goes on from its own hints at least, so to
// all others the two clocks are one.
//
// Without StartU's condition the second would be wrong: a leader that was cut off
// and does not know it goes on from a higher U than its successor, who did not hear
// its last hints, and leases that the successor began would end early by the
// difference. The real time since a hint is never added: while there is no leader
// nobody can extend.
type Hint struct {
	Term uint64 `json:"term"`
	U    int64  `json:"u"`
}

// Later returns the hint of the later term; of one term, the one with the higher U.
func (h Hint) Later(other Hint) Hint {
	if other.Term > h.Term || other.Term == h.Term && other.U > h.U {
		return other
	}
	return h
}

// StartU returns from where the U of the leader of term goes on: from the state's, or
// from a hint of the leader that stamped the state's newest entry, in newestTerm, or
// from one of this term. No other hint counts. newestTerm is 0 if that is not known.
func StartU(state fsm.Stamp, newestTerm, term uint64, hints ...Hint) int64 {
	u := state.U
	for _, h := range hints {
		if h.Term != 0 && (h.Term == newestTerm || h.Term == term) {
			u = max(u, h.U)
		}
	}
	return u
}

// HintDue reports whether a leader tells its U, with a state of so many claims, of
// tasks and of finalizations.
func HintDue(now, state fsm.Stamp, claims int) bool {
	return claims > 0 && now.U-state.U >= hintAfter
}
