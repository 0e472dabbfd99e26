package replica

import (
	"sync"
	"sync/atomic"

	"github.com/claimq/claimq/fsm"
)

// answerPool has reusable memory for results that callers wait for.
type answerPool struct{ pool sync.Pool }

// entryAnswers is the memory for the results of one entry. It returns to its pool when
// every result has been released; if one never is, the garbage collector takes it.
type entryAnswers struct {
	memory  fsm.Answers
	kept    atomic.Int64 // results that have not been released
	release func()       // releases one result
}

// take returns unused memory.
func (p *answerPool) take() *entryAnswers {
	if a, ok := p.pool.Get().(*entryAnswers); ok {
		return a
	}
	a := &entryAnswers{memory: fsm.NewAnswers()}
	a.release = func() {
		if a.kept.Add(-1) == 0 {
			p.pool.Put(a)
		}
	}
	return a
}

// share keeps the memory until each result of the entry has been released.
func (a *entryAnswers) share(applied *fsm.Applied) {
	a.kept.Store(int64(len(applied.Results)))
	applied.Release = a.release
}
