package replica

import (
	"sync"
	"sync/atomic"

	"github.com/claimq/claimq/fsm"
)

// answerPool has memory for the results of entries that callers here wait for.
type answerPool struct{ pool sync.Pool }

// entryAnswers is the memory for the results of one entry. It goes back to its
// pool when every result has been released; while one is kept it is left to the
// collector.
type entryAnswers struct {
	memory  fsm.Answers
	kept    atomic.Int64 // results that have not been released
	release func()       // releases one
}

// take returns memory that nobody uses.
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

// share has the memory kept until each result of the entry has been released.
func (a *entryAnswers) share(applied *fsm.Applied) {
	a.kept.Store(int64(len(applied.Results)))
	applied.Release = a.release
}
