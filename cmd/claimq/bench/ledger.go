package bench

import "sync"

// ledger notes what became of each task of the run, to say at the end whether
// each was done exactly once.
type ledger struct {
	mu   sync.Mutex
	done map[uint64]int // by id: acknowledged completes. Guarded by mu
}

func newLedger(tasks int) *ledger { return &ledger{done: make(map[uint64]int, tasks)} }

func (l *ledger) submitted(ids []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if _, ok := l.done[id]; !ok {
			l.done[id] = 0
		}
	}
}

func (l *ledger) completed(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[id]++
}

// totals counts the tasks that were done, done more than once, and submitted
// but never done.
func (l *ledger) totals() (done, doubled, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.done {
		switch {
		case n == 0:
			lost++
		case n > 1:
			doubled++
			done++
		default:
			done++
		}
	}
	return done, doubled, lost
}
