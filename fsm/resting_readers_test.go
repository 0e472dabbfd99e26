package fsm

import (
	"bytes"
	"sync"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// Readers under the read lock, and a snapshot that is written meanwhile, change nothing
// that another reader or a later entry uses. Only the race detector can check all of it.
func TestTable_RestingTasksAreReadBesideEachOther(t *testing.T) {
	t.Parallel()
	const entries = 400
	log := randomLog(3, entries)
	m := newSmall()
	applyLog(t, m, log[:entries/2])
	var lock sync.RWMutex
	var beside sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		beside.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				lock.RLock()
				for _, task := range m.List(ListQuery{Limit: pageTasksMax, Filter: record.Filter{Type: "a"}}).Tasks {
					m.Why(task.ID, m.Stamp())
				}
				kept := m.List(ListQuery{Limit: pageTasksMax, Descending: true}).Tasks
				m.Stats(m.Stamp())
				lock.RUnlock()
				for _, task := range kept { // their bytes may be kept
					_ = bytes.Count(task.Params, []byte("x")) + bytes.Count(task.Payload, []byte("x"))
				}
			}
		})
	}
	for at := entries / 2; at < entries; at += 10 {
		lock.Lock()
		s := m.Snapshot()
		lock.Unlock()
		beside.Go(func() {
			defer s.Release()
			first := written(t, s)
			if !bytes.Equal(written(t, s), first) {
				t.Error("a capture changed while it was read")
			}
			if _, err := ReadSnapshot(bytes.NewReader(first)); err != nil {
				t.Error(err)
			}
		})
		for _, e := range log[at : at+10] {
			lock.Lock()
			applyLog(t, m, []testEntry{e})
			lock.Unlock()
		}
	}
	close(done)
	beside.Wait()
	mustCheck(t, m)
}
