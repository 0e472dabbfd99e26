package api

import (
	"sync/atomic"

	"github.com/claimq/claimq/api/bound"
)

// askedWindowMS is how long ago a worker may have asked for a type to count as
// one that takes its tasks. A claim that waits has asked no longer ago, for none
// waits longer, and it counts once more when it ends.
const askedWindowMS = bound.WaitMSMax

// asked remembers when claims last asked for each type, and for any. Only the
// leader is asked, so only its table says something.
type asked struct {
	types   *lastSeen
	anyType atomic.Int64 // 0 = never
}

// note says that a claim asked for those types, for any if there are none.
func (a *asked) note(types []string, at int64) {
	if len(types) == 0 {
		a.anyType.Store(at)
		return
	}
	for _, t := range types {
		a.types.note(t, at)
	}
}

// last returns when a claim last asked that would take tasks of that type, 0 if
// none did.
func (a *asked) last(taskType string) int64 {
	return max(a.types.last(taskType), a.anyType.Load())
}
