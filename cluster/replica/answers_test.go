package replica

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/cluster/replica/replicatest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// Results do not change until the last one of their entry has been released, whatever is
// applied meanwhile.
func TestReplica_ReleasedAnswers(t *testing.T) {
	t.Parallel()
	f := newTestReplica(t, func(err error) { t.Error(err) })
	f.cfg.Awaited = nil // every entry is awaited
	index := uint64(0)
	submit := func() *fsm.Applied {
		index++
		var commands []command.Command
		for i := range 3 {
			commands = append(commands, command.Submit{Tasks: []fsm.NewTask{{Type: fmt.Sprintf("t-%d-%d", index, i), Params: []byte("1")}}})
		}
		return f.ApplyEntry(index, 1, replicatest.Entry(int64(index), commands...))
	}
	release := func(a *fsm.Applied, count int) {
		for range count {
			a.Release()
		}
	}
	var held []*fsm.Applied
	for range 20 {
		a := submit()
		release(a, 2)
		held = append(held, a)
		release(submit(), 3)
	}
	for n, a := range held {
		for i, result := range a.Results {
			want := fmt.Sprintf("t-%d-%d", 2*n+1, i)
			if len(result.Submitted) != 1 || result.Submitted[0].Task.Type != want {
				t.Fatalf("result %d of entry %d, which is not released, became %+v", i, a.Index, result.Submitted)
			}
		}
		release(a, 1)
	}
}

// Results of the next entry reuse released memory.
func TestAnswerPool_UsesMemoryAgain(t *testing.T) {
	t.Parallel()
	var p answerPool
	again := false
	for range 1000 { // the race detector drops some objects that a pool is given
		a := p.take()
		a.share(&fsm.Applied{Results: make([]fsm.Result, 2)})
		a.release()
		b := p.take()
		if b == a {
			t.Fatal("memory was handed out while a result is read")
		}
		a.release()
		c := p.take()
		again = again || c == a
	}
	if !again {
		t.Error("no memory was used again")
	}
}
