package confirm

import (
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

// commitWire records the commit index of each message.
type commitWire struct {
	raft.Transport
	told []uint64
}

func (w *commitWire) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	w.told = append(w.told, args.LeaderCommitIndex)
	return nil
}

// commitPipe does the same for a pipeline.
type commitPipe struct {
	raft.AppendPipeline
	wire *commitWire
}

func (p commitPipe) Consumer() <-chan raft.AppendFuture { return nil }
func (p commitPipe) Close() error                       { return nil }

func (p commitPipe) AppendEntries(args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.wire.told = append(p.wire.told, args.LeaderCommitIndex)
	return nil, nil
}

// No message, however it is sent, has a commit index beyond the leader's disk.
func TestConfirmer_tellsWhatIsStored(t *testing.T) {
	t.Parallel()
	wire := &commitWire{}
	c := New(wire, Config{Stored: func(index uint64) uint64 { return min(index, 7) }})
	pipe := newPipeline(c, "b", commitPipe{wire: wire})
	for _, commit := range []uint64{6, 9} {
		if err := c.AppendEntries("b", "", &raft.AppendEntriesRequest{LeaderCommitIndex: commit}, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
		if _, err := pipe.AppendEntries(&raft.AppendEntriesRequest{LeaderCommitIndex: commit}, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
	if want := []uint64{6, 6, 7, 7}; !slices.Equal(wire.told, want) {
		t.Errorf("told %d, want %d", wire.told, want)
	}
}

// lateWire reads each message again after it was answered, like a slow peer.
type lateWire struct {
	raft.Transport
	reading sync.WaitGroup
}

func (w *lateWire) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	w.reading.Go(func() { _ = args.LeaderCommitIndex })
	return nil
}

// Raft sends the same heartbeat repeatedly. The race detector finds writes to it.
func TestConfirmer_leavesHeartbeatsAsTheyAre(t *testing.T) {
	t.Parallel()
	wire := &lateWire{}
	c := New(wire, Config{Stored: func(index uint64) uint64 { return min(index, 7) }})
	beat := &raft.AppendEntriesRequest{}
	for range 10 {
		if err := c.AppendEntries("b", "", beat, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	wire.reading.Wait()
}
