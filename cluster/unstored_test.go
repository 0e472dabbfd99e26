package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
)

// gatedLog is a log whose appends wait while its gate is closed.
type gatedLog struct {
	logBackend
	gate    atomic.Pointer[chan struct{}] // nil: open
	waiting atomic.Int32                  // appends at the gate
}

func (g *gatedLog) StoreLogs(logs []*raft.Log) error {
	if gate := g.gate.Load(); gate != nil {
		g.waiting.Add(1)
		<-*gate
		g.waiting.Add(-1)
	}
	return g.logBackend.StoreLogs(logs)
}

// hold closes the gate until open is called.
func (g *gatedLog) hold() (open func()) {
	gate := make(chan struct{})
	g.gate.Store(&gate)
	return func() {
		g.gate.Store(nil)
		close(gate)
	}
}

func command(index uint64) *raft.Log {
	return &raft.Log{Index: index, Term: 2, Type: raft.LogCommand, Data: fmt.Append(nil, "entry ", index)}
}

// gatedBench is a leader's log of one entry, whose disk is held up until open is called.
type gatedBench struct {
	*faultBench
	disk  *gatedLog
	leads atomic.Bool
	open  func()
}

func newGatedBench(t *testing.T) *gatedBench {
	t.Helper()
	b := &gatedBench{faultBench: newFaultBench(t)}
	b.disk = &gatedLog{logBackend: b.bolt}
	b.log.disk = b.disk
	b.log.LedBy(b.leads.Load)
	if err := b.log.StoreLog(command(1)); err != nil {
		t.Fatal(err)
	}
	b.leads.Store(true)
	b.open = b.disk.hold()
	return b
}

// begin calls fn in a goroutine. ended reports whether it has ended, once nothing
// moves any more, and its error.
func begin(fn func() error) (ended func() (bool, error)) {
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return func() (bool, error) {
		synctest.Wait()
		select {
		case err := <-done:
			done <- err
			return true, err
		default:
			return false, nil
		}
	}
}

// What a leader appends can be sent at once, and counts as stored when it is on disk.
func TestLogStore_leaderAppends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGatedBench(t)
		defer b.guard.close()
		l := b.log
		if err := l.StoreLogs([]*raft.Log{command(2), command(3)}); err != nil {
			t.Fatal(err)
		}
		if err := l.StoreLog(command(4)); err != nil {
			t.Fatal(err)
		}
		var got raft.Log
		if err := l.GetLog(3, &got); err != nil || string(got.Data) != "entry 3" {
			t.Errorf("entry 3 is %q, %v", got.Data, err)
		}
		if last, _ := l.LastIndex(); last != 4 {
			t.Errorf("the last entry is %d", last)
		}
		for index, want := range map[uint64]uint64{1: 1, 2: 1, 4: 1} {
			if got := l.Stored(index); got != want {
				t.Errorf("of %d, %d are stored, want %d", index, got, want)
			}
		}
		if err := l.AwaitStored(1); err != nil {
			t.Error(err)
		}
		l.cache.deleteRange(1, 4) // it would have to be read from the disk
		if got := l.LastCommand(4); got != 4 {
			t.Errorf("the last command up to 4 is %d", got)
		}
		stored := begin(func() error { return l.AwaitStored(3) })
		if done, _ := stored(); done {
			t.Error("entry 3 is said to be stored, the disk has not got it")
		}
		b.open()
		if done, err := stored(); !done || err != nil || l.Stored(4) != 4 {
			t.Errorf("the disk has all, and awaiting it ended: %v, %v; stored %d of 4", done, err, l.Stored(4))
		}
		if err := b.disk.GetLog(4, &got); err != nil {
			t.Error(err)
		}
	})
}

// Who does not lead answers for what it has; and what is not a command, or cuts off
// the end of the log, waits.
func TestLogStore_waitsForDisk(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(l *logStore, leads *atomic.Bool) error{
		"a follower reads": func(l *logStore, leads *atomic.Bool) error {
			leads.Store(false)
			return l.GetLog(2, &raft.Log{})
		},
		"a follower appends": func(l *logStore, leads *atomic.Bool) error {
			leads.Store(false)
			return l.StoreLog(command(3))
		},
		"a leader appends a configuration": func(l *logStore, _ *atomic.Bool) error {
			return l.StoreLogs([]*raft.Log{command(3), {Index: 4, Term: 2, Type: raft.LogConfiguration}})
		},
		"the end is cut off": func(l *logStore, _ *atomic.Bool) error { return l.DeleteRange(2, 2) },
		"an entry that is in no cache": func(l *logStore, _ *atomic.Bool) error {
			l.cache.deleteRange(1, 2)
			return l.GetLog(2, &raft.Log{})
		},
		"too much is under way": func(l *logStore, _ *atomic.Bool) error {
			for n := range uint64(unstoredMax) {
				if err := l.StoreLog(command(3 + n)); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newGatedBench(t)
				defer b.guard.close()
				if err := b.log.StoreLog(command(2)); err != nil {
					t.Fatal(err)
				}
				ended := begin(func() error { return do(b.log, &b.leads) })
				if done, err := ended(); done {
					t.Errorf("it does not wait for the disk: %v", err)
				}
				if n := b.disk.waiting.Load(); n != 1 {
					t.Errorf("%d appends are at the disk at once", n)
				}
				b.open()
				if done, err := ended(); !done || err != nil {
					t.Errorf("the disk has all, and it ended: %v, %v", done, err)
				}
				b.log.unstored.close()
			})
		})
	}
}

// A write that fails ends the node once; nothing that was behind it is stored.
func TestLogStore_leaderAppendFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newGatedBench(t)
		defer b.guard.close()
		l := b.log
		if err := l.StoreLog(command(2)); err != nil {
			t.Fatal(err)
		}
		b.bolt.before = func(string) error { return errors.New("the disk is gone") }
		b.open()
		if err := l.AwaitStored(2); !errors.Is(err, ErrStorageFailed) {
			t.Errorf("await: %v", err)
		}
		if err := l.StoreLog(command(3)); !errors.Is(err, ErrStorageFailed) {
			t.Errorf("append: %v", err)
		}
		if err := l.AwaitStored(1); err != nil || l.Stored(3) != 1 {
			t.Errorf("of what was stored before: %v, %d", err, l.Stored(3))
		}
		l.unstored.close()
		if n := b.fatals.Load(); n != 1 {
			t.Errorf("the node was ended %d times", n)
		}
	})
}

// newGatedCluster is three nodes with data folders, whose disks can be held up.
func newGatedCluster(t *testing.T) (nodes []*Node, disks []*gatedLog) {
	t.Helper()
	var servers []raft.Server
	var transports []*raft.InmemTransport
	for i := range 3 {
		addr, transport := raft.NewInmemTransport("")
		servers = append(servers, raft.Server{ID: raft.ServerID(fmt.Sprint("uuid-", i)), Address: addr})
		transports = append(transports, transport)
	}
	for i, transport := range transports {
		for _, other := range transports {
			transport.Connect(other.LocalAddr(), other)
		}
		stores := openTestStores(t, t.TempDir(), storesConfig{})
		disk := &gatedLog{logBackend: stores.log}
		stores.Log.disk = disk
		cfg := testConfig(t, fmt.Sprint("n", i+1), "", "")
		parts := Parts{UUID: string(servers[i].ID), Logs: stores.Log, Stable: stores.Stable, Snapshots: stores.Snapshots, Transport: transport, Servers: servers}
		n, err := OpenParts(cfg, parts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeNode(t, n) })
		nodes, disks = append(nodes, n), append(disks, disk)
	}
	return nodes, disks
}

// While the leader's own disk does not have an entry nobody applies it, however many
// others have it: they and a leader that loses power could be outvoted by the third.
func TestLeader_ownDisk(t *testing.T) {
	t.Parallel()
	nodes, disks := newGatedCluster(t)
	leader := leaderOf(t, nodes...)
	propose := func() (fsm.Proposed, error) {
		return leader.Propose(context.Background(), fsm.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}})
	}
	eventually(t, "a submit to be taken", func() bool { _, err := propose(); return err == nil })
	at := 0
	for i, n := range nodes {
		if n == leader {
			at = i
		}
	}
	before, _ := leader.logs.LastIndex()
	open := sync.OnceFunc(disks[at].hold())
	t.Cleanup(open)
	type answer struct {
		fsm.Proposed
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		p, err := propose()
		answered <- answer{p, err}
	}()
	index := before + 1
	eventually(t, "Raft to take the entry for committed", func() bool { return leader.raft.CommitIndex() >= index })
	sent := leader.raft.confirmer().sent.Load()
	eventually(t, "Raft to tell of it", func() bool { return leader.raft.confirmer().sent.Load() >= sent+20 })
	for _, n := range nodes {
		if applied := n.fsm.applied.Load(); applied >= index {
			t.Errorf("%s has applied entry %d; the leader's disk does not have entry %d", n.NodeID(), applied, index)
		}
	}
	select {
	case a := <-answered:
		t.Fatalf("answered: %v, %v", a.Proposed, a.err)
	default:
	}
	open()
	if a := <-answered; a.err != nil || a.Index < index {
		t.Errorf("entry %d: index %d, %v", index, a.Index, a.err)
	}
	eventually(t, "all to apply the entry", func() bool {
		for _, n := range nodes {
			if n.fsm.applied.Load() < index {
				return false
			}
		}
		return true
	})
}

// A leader whose disk fails while an entry is on its way to it neither answers nor
// applies it, nor anything after it, and takes no snapshot that would hide that.
func TestRaftFSM_leaderDiskFails(t *testing.T) {
	t.Parallel()
	f := newTestFSM(t, testFatal(t))
	failure := errors.New("the disk is gone")
	f.stored = func(index uint64) error {
		if index == 2 {
			return failure
		}
		return nil
	}
	entry := func(index uint64) *raft.Log {
		return &raft.Log{Index: index, Data: fsm.AppendEntry(nil, fsm.Stamp{U: int64(index)}, fsm.SetLevel{Level: fsm.FeatureLevel})}
	}
	if a, ok := f.Apply(entry(1)).(*fsm.Applied); !ok || a.Index != 1 {
		t.Errorf("entry 1: %v", a)
	}
	for _, index := range []uint64{2, 3} {
		if err, ok := f.Apply(entry(index)).(error); !ok || !errors.Is(err, failure) {
			t.Errorf("entry %d: %v", index, err)
		}
	}
	f.StoreConfiguration(4, raft.Configuration{})
	if _, err := f.Snapshot(); !errors.Is(err, failure) {
		t.Errorf("snapshot: %v", err)
	}
	if applied := f.applied.Load(); applied != 1 {
		t.Errorf("applied up to %d", applied)
	}
}

// The stores are closed when all that a leader appended is on disk.
func TestStores_closeAwaitsDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		b := openTestStores(t, path, storesConfig{})
		disk := &gatedLog{logBackend: b.log}
		b.Log.disk = disk
		b.Log.LedBy(func() bool { return true })
		open := disk.hold()
		if err := b.Log.StoreLog(command(1)); err != nil {
			t.Fatal(err)
		}
		closed := begin(b.Close)
		if done, err := closed(); done {
			t.Errorf("the stores are closed, and the disk does not have it: %v", err)
		}
		open()
		if done, err := closed(); !done || err != nil {
			t.Fatalf("closed: %v, %v", done, err)
		}
		if err := b.dir.Close(); err != nil {
			t.Fatal(err)
		}
		again := openTestStores(t, path, storesConfig{})
		if last, err := again.Log.LastIndex(); last != 1 || err != nil {
			t.Errorf("the last entry is %d, %v", last, err)
		}
		again.close(t)
	})
}

// commitWire notes the commit index of each message.
type commitWire struct {
	raft.Transport
	told []uint64
}

func (w *commitWire) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	w.told = append(w.told, args.LeaderCommitIndex)
	return nil
}

// commitPipe is the same of a pipeline.
type commitPipe struct {
	raft.AppendPipeline
	wire *commitWire
}

func (p commitPipe) AppendEntries(args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.wire.told = append(p.wire.told, args.LeaderCommitIndex)
	return nil, nil
}

// However a message goes, it tells of no commit index that the leader's disk has not.
func TestConfirmer_tellsWhatIsStored(t *testing.T) {
	t.Parallel()
	wire := &commitWire{}
	c := newConfirmer(wire)
	c.stored = func(index uint64) uint64 { return min(index, 7) }
	pipe := &confirmPipeline{AppendPipeline: commitPipe{wire: wire}, confirmer: c, numbers: map[*raft.AppendEntriesRequest]uint64{}}
	for _, commit := range []uint64{6, 9} {
		if err := c.AppendEntries("b", "", &raft.AppendEntriesRequest{LeaderCommitIndex: commit}, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
		if _, err := pipe.AppendEntries(&raft.AppendEntriesRequest{LeaderCommitIndex: commit}, &raft.AppendEntriesResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []uint64{6, 6, 7, 7}; !slices.Equal(wire.told, want) {
		t.Errorf("told %d, want %d", wire.told, want)
	}
}
