package storage

import (
	"testing"

	"github.com/hashicorp/raft"
)

// appendingLog appends an entry while a caller looks for the end of the log.
type appendingLog struct {
	raft.LogStore
	appends func()
}

func (b *appendingLog) LastIndex() (uint64, error) {
	last, err := b.LogStore.LastIndex()
	if appends := b.appends; appends != nil {
		b.appends = nil
		appends()
	}
	return last, err
}

// Raft compacts the log in one goroutine while another one appends to it. The entry that
// was appended meanwhile is still the last one.
func TestLogStore_AppendsWhileItIsCompacted(t *testing.T) {
	t.Parallel()
	b := newFaultBench(t)
	mustStore(t, b.log, testEntries(1, 10)...)
	b.log.disk = &appendingLog{b.bolt, func() { mustStore(t, b.log, testEntry(11)) }}
	if err := b.log.DeleteRange(1, 5); err != nil {
		t.Fatal(err)
	}
	first, _ := b.log.FirstIndex()
	last, _ := b.log.LastIndex()
	if first != 6 || last != 11 {
		t.Errorf("the log has [%d, %d], want [6, 11]", first, last)
	}
}
