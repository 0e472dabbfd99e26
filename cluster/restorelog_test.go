package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// A restore goes through the log. These tests end nodes in the middle of one.

// savedTasks is the number of tasks in the backup of savedBackup.
const savedTasks = 5

func savedBackup(t *testing.T) []byte {
	t.Helper()
	cfg := testConfig(t, "old", t.TempDir(), "127.0.0.1:0")
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	for range savedTasks {
		submitOne(t, n)
	}
	return save(t, n)
}

// restoreSteps is a restore that a test performs step by step, at a leader between scopes of its
// leadership.
type restoreSteps struct {
	n     *Node
	p     *preparedRestore
	bytes []byte
	begin uint64
	last  uint64 // index of the last step's entry
	err   error  // of the first step that failed; later ones do nothing
}

// within calls do in the middle of a restore: the scope of the leadership of one of the nodes
// has ended, and begins again when do has returned. It returns that node and the error of do,
// and of the step that failed. Nodes that no longer lead before do are skipped.
func (c *backupCluster) within(saved []byte, all []*Node, do func(s *restoreSteps) (uint64, error)) (leader *Node, err error) {
	c.t.Helper()
	eventually(c.t, "a restore to begin", func() (begun bool) {
		leader = leaderOf(c.t, all...)
		err = c.between(leader, func() (uint64, error) {
			s, err := prepared(c.t, leader, saved)
			if err != nil {
				return 0, err
			}
			begun = true
			index, err := do(s)
			return index, errors.Join(s.err, err)
		})
		return begun || !leaderChanged(err)
	})
	return leader, err
}

// between is Node.between of a restore, but do is called by the test's goroutine, which may end
// the test.
func (c *backupCluster) between(leader *Node, do func() (uint64, error)) error {
	type outcome struct {
		index uint64
		err   error
	}
	leader.backups.restoring <- struct{}{}
	defer func() { <-leader.backups.restoring }()
	begun, done, ended := make(chan struct{}), make(chan outcome, 1), make(chan error, 1)
	go func() {
		_, err := leader.exclusively(context.Background(), func() (uint64, error) {
			close(begun)
			o := <-done
			return o.index, o.err
		})
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		return err
	}
	defer close(done) // even if do ends the test
	index, err := do()
	done <- outcome{index, err}
	return <-ended
}

// prepared begins the steps, between scopes of n's leadership.
func prepared(t *testing.T, n *Node, saved []byte) (*restoreSteps, error) {
	backup, err := fsm.ReadBackup(bytes.NewReader(saved), int64(len(saved)))
	if err != nil {
		return nil, err
	}
	p, err := n.backups.prepareRestore(context.Background(), backup)
	if err != nil {
		return nil, err
	}
	t.Cleanup(p.grafted.Close)
	all, err := io.ReadAll(p.grafted.Reader())
	return &restoreSteps{n: n, p: p, bytes: all}, err
}

// do proposes the command and waits until it is applied.
func (s *restoreSteps) do(c command.Command) {
	if s.err != nil {
		return
	}
	index, err := s.n.backups.awaitEntry(context.Background(), s.n.backups.applyAlone(s.p.stamp, c))
	if err != nil {
		s.err = restoreFailed(err)
	}
	s.last = index
}

func (s *restoreSteps) beginIt() {
	s.do(command.RestoreBegin{Bytes: uint64(len(s.bytes))})
	s.begin = s.last
}

// chunk proposes the bytes [from, to).
func (s *restoreSteps) chunk(from, to int) {
	s.do(command.RestoreChunk{Begin: s.begin, Offset: uint64(from), Data: s.bytes[from:to]})
}

func (s *restoreSteps) endIt() { s.do(command.RestoreEnd{Begin: s.begin}) }

// killedWithin returns a cluster whose leader was closed, as abruptly as possible here, when do had
// returned in the middle of a restore: no other scope began, and no leadership was transferred. It
// also returns the leader's index. After an election in the middle it makes another cluster.
func killedWithin(t *testing.T, saved []byte, do func(c *backupCluster, s *restoreSteps)) (c *backupCluster, killed int) {
	t.Helper()
	eventually(t, "a restore without an election in the middle", func() bool {
		c = newBackupCluster(t)
		closed := make(chan struct{})
		leader, err := c.within(saved, c.nodes, func(s *restoreSteps) (uint64, error) {
			do(c, s)
			go func() {
				defer close(closed)
				c.close(s.n)
			}()
			<-s.n.ctx.Done()
			return 0, nil
		})
		if err != nil && !leaderChanged(err) {
			t.Fatal(err)
		}
		<-closed
		if killed = slices.Index(c.nodes, leader); err != nil {
			c.close(c.others(killed)...)
		}
		return err == nil
	})
	return c, killed
}

// reopen opens the i-th node again.
func (c *backupCluster) reopen(i int) {
	c.t.Helper()
	c.cfgs[i].Registerer = testConfig(c.t, "", "", "").Registerer
	c.nodes[i] = openNode(c.t, c.cfgs[i])
}

// others returns all nodes but the i-th.
func (c *backupCluster) others(i int) (nodes []*Node) {
	for j, n := range c.nodes {
		if j != i {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// tasksAt returns the number of tasks, and whether a restore is under way.
func tasksAt(n *Node) (tasks int64, under bool) {
	n.fsm.Read(func(m *fsm.Machine) {
		tasks = m.Stats(m.Stamp()).Counts[fsm.StatusPending]
		_, under = m.Restoring()
	})
	return tasks, under
}

// ensureTasks waits until all nodes are at the same index with the same state, and returns the
// number of their tasks.
func (c *backupCluster) ensureTasks() int64 {
	c.t.Helper()
	c.ensureSame()
	tasks, under := tasksAt(c.nodes[0])
	if under {
		c.t.Errorf("%s says that a restore is under way", c.nodes[0].NodeID())
	}
	return tasks
}

// If a leader dies in the middle of a restore, at any point, nothing of it remains, or all of
// it: the same on every node, including the leader once it is back. Writes acknowledged
// meanwhile stay, and a cluster without tasks then accepts the backup.
func TestRestoreBackup_killed(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	for _, test := range []struct {
		name string
		do   func(c *backupCluster, s *restoreSteps)
		want int64
	}{
		{"before its begin", func(*backupCluster, *restoreSteps) {}, 0},
		{"behind its begin", func(_ *backupCluster, s *restoreSteps) { s.beginIt() }, 0},
		{"between its chunks", func(_ *backupCluster, s *restoreSteps) { s.beginIt(); s.chunk(0, len(s.bytes)/2) }, 0},
		{"before its end", func(_ *backupCluster, s *restoreSteps) { s.beginIt(); s.chunk(0, len(s.bytes)) }, 0},
		{"behind its end", func(_ *backupCluster, s *restoreSteps) { s.beginIt(); s.chunk(0, len(s.bytes)); s.endIt() }, savedTasks},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, killed := killedWithin(t, saved, test.do)
			leader := leaderOf(t, c.others(killed)...)
			eventually(t, "the next leader to serve", func() bool { return leader.Ready() == nil })
			if tasks, under := tasksAt(leader); tasks != test.want || under {
				t.Errorf("the next leader has %d tasks, want %d; a restore is under way: %t", tasks, test.want, under)
			}
			c.reopen(killed)
			if got := c.ensureTasks(); got != test.want {
				t.Errorf("%d tasks, want %d", got, test.want)
			}
			if test.want > 0 {
				return
			}
			c.restore(saved)
			if got := c.ensureTasks(); got != savedTasks {
				t.Errorf("%d tasks behind the second restore, want %d", got, savedTasks)
			}
		})
	}
}

// The end of a restore that only its leader has may later be committed by that leader, or be cut
// off by another one; it never stays on one node alone.
func TestRestoreBackup_endWithoutMajority(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	for _, othersFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("others first: ", othersFirst), func(t *testing.T) {
			t.Parallel()
			var end []byte
			c, killed := killedWithin(t, saved, func(c *backupCluster, s *restoreSteps) {
				s.beginIt()
				s.chunk(0, len(s.bytes))
				c.close(c.others(slices.Index(c.nodes, s.n))...)
				if s.err == nil && s.n.raft.LastIndex() != s.last {
					s.err = nodes.ErrNotLeader // another leader wrote something meanwhile
				}
				end = command.AppendEntry(nil, s.p.stamp, command.RestoreEnd{Begin: s.begin})
			})
			c.plantEntry(killed, end)
			for i := range c.cfgs {
				c.cfgs[i].Registerer = testConfig(t, "", "", "").Registerer
			}
			want := int64(-1)
			if othersFirst {
				for i := range c.nodes {
					if i != killed {
						c.nodes[i] = openNode(t, c.cfgs[i])
					}
				}
				next := leaderOf(t, c.others(killed)...)
				eventually(t, "the next leader to serve", func() bool { return next.Ready() == nil })
				if tasks, under := tasksAt(next); tasks != 0 || under {
					t.Errorf("the next leader has %d tasks, a restore is under way: %t", tasks, under)
				}
				want = 0
				c.nodes[killed] = openNode(t, c.cfgs[killed])
			} else {
				c.open()
			}
			leaderOf(t, c.nodes...)
			got := c.ensureTasks()
			if got != 0 && got != savedTasks || want >= 0 && got != want {
				t.Errorf("%d tasks", got)
			}
			submitted := submitOne(t, c.nodes...)
			if c.task(submitted.Result.Submitted[0].Task.ID) == nil {
				t.Error("an acknowledged task is lost")
			}
			c.ensureSame()
		})
	}
}

// The leadership moves in the middle of a restore: the restore is given up on every node, its
// caller is told that nothing was changed, and the rest of it, proposed by the old leader when
// it leads again, changes nothing.
func TestRestoreBackup_leadershipMoves(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	c := newBackupCluster(t)
	var err error
	eventually(t, "the leadership to move in the middle of a restore", func() bool {
		tried := false
		_, err = c.within(saved, c.nodes, func(s *restoreSteps) (uint64, error) {
			s.beginIt()
			s.chunk(0, len(s.bytes)/2)
			if tried = c.allWithin(s); !tried {
				return 0, nodes.ErrNotLeader
			}
			return 0, c.moveWithin(s)
		})
		return tried // else another leader came first
	})
	if !errors.Is(err, nodes.ErrNotLeader) {
		t.Errorf("restore: %v, want ErrNotLeader", err)
	}
	if got := c.ensureTasks(); got != 0 {
		t.Errorf("%d tasks of a restore that was given up", got)
	}
}

// allWithin waits until all nodes are in the middle of the restore, and checks that no snapshot is
// taken then. It returns false if the restore was given up instead, for another leader.
func (c *backupCluster) allWithin(s *restoreSteps) bool {
	c.t.Helper()
	eventually(c.t, "all to be in the middle of it", func() bool {
		return s.n.raft.State() != raft.Leader || !slices.ContainsFunc(c.nodes, func(n *Node) bool { _, under := tasksAt(n); return !under })
	})
	_, err := s.n.fsm.Snapshot()
	due := s.n.snapshots.due()
	for _, n := range c.nodes {
		if _, under := tasksAt(n); !under {
			return false
		}
	}
	if !errors.Is(err, replica.ErrRestoreUnderWay) || due {
		c.t.Errorf("a snapshot in the middle of it: %v, due: %t", err, due)
	}
	return true
}

// moveWithin moves the leadership to another node and back in the middle of a restore, and returns
// how that ended for the first leader. Its end must be refused.
func (c *backupCluster) moveWithin(s *restoreSteps) error {
	c.t.Helper()
	leader := s.n
	other := c.others(slices.Index(c.nodes, leader))[0]
	eventually(c.t, "the other to serve", func() bool {
		c.move(other)
		return other.Ready() == nil && other.IsLeader()
	})
	for _, n := range c.nodes {
		eventually(c.t, "all to have given it up", func() bool { _, under := tasksAt(n); return !under })
	}
	end := func() error {
		_, err := leader.backups.awaitEntry(context.Background(), leader.backups.applyAlone(s.p.stamp, command.RestoreEnd{Begin: s.begin}))
		return err
	}
	err := end()
	eventually(c.t, "the first to refuse the end of a restore that was given up", func() bool {
		c.move(leader)
		err := end()
		if err == nil {
			c.t.Fatal("the end of a restore that was given up is taken")
		}
		var refused *restoreRefused
		return errors.As(err, &refused)
	})
	return restoreFailed(err)
}

// A node that was down while a backup was restored gets it from the log, or with a snapshot if
// the log has gone.
func TestRestoreBackup_nodeThatWasDown(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	for _, compacted := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted: ", compacted), func(t *testing.T) {
			t.Parallel()
			c := newBackupCluster(t)
			at := slices.Index(c.nodes, c.follower())
			closeNode(t, c.nodes[at])
			// A member that does not answer prevents a restore, because its record does not say
			// that it knows the level. So it falls silent in the middle of it.
			c.restoredBy(func() (uint64, error) {
				var index uint64
				_, err := c.within(saved, c.others(at), func(s *restoreSteps) (_ uint64, err error) {
					index, err = s.n.backups.restorePrepared(context.Background(), s.p)
					return index, err
				})
				return index, err
			})
			submitOne(t, c.others(at)...)
			if compacted {
				for _, n := range c.others(at) {
					n.snapshots.trailing = func(int64, int64) uint64 { return 1 }
					if err := n.snapshots.take(context.Background()); err != nil {
						t.Fatal(err)
					}
					if first, err := n.logs.FirstIndex(); err != nil || first < 5 {
						t.Fatalf("the log of %s begins at %d, %v", n.NodeID(), first, err)
					}
				}
			}
			c.reopen(at)
			if got := c.ensureTasks(); got != savedTasks+1 {
				t.Errorf("%d tasks, want %d", got, savedTasks+1)
			}
			if got := counted(c.nodes[at].stats.fsm.restores); (got > 0) != compacted {
				t.Errorf("it restored %d snapshots", got)
			}
		})
	}
}

// A cluster can be made from a folder whose log ends after a restore, or in the middle of one:
// with the backup's tasks, or without any.
func TestRecover_restoreInTheLog(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	for want, steps := range map[int64]func(c *backupCluster, s *restoreSteps){
		0:          func(_ *backupCluster, s *restoreSteps) { s.beginIt(); s.chunk(0, len(s.bytes)-1) },
		savedTasks: func(_ *backupCluster, s *restoreSteps) { s.beginIt(); s.chunk(0, len(s.bytes)); s.endIt() },
	} {
		t.Run(fmt.Sprint(want, " tasks"), func(t *testing.T) {
			t.Parallel()
			c, killed := killedWithin(t, saved, steps)
			c.close(c.others(killed)...)
			cfg := c.cfgs[killed]
			if _, err := Recover(RecoverConfig{DataDir: cfg.DataDir, Logger: cfg.Logger}); err != nil {
				t.Fatal(err)
			}
			cfg.InitialCluster, cfg.Registerer = nil, testConfig(t, "", "", "").Registerer
			n := openNode(t, cfg)
			submitOne(t, n)
			if tasks, under := tasksAt(n); tasks != want+1 || under {
				t.Errorf("%d tasks, want %d; a restore is under way: %t", tasks, want+1, under)
			}
		})
	}
}

// A cluster is made from a folder whose node crashed after it had installed a snapshot, and
// before any following entry: with the state of the snapshot, and nothing of the earlier log,
// whether that ends below the snapshot or continues above it with entries that were never
// committed.
func TestRecover_snapshotTakenOver(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	for name, above := range map[string]int{"the log ends below": 100, "the log goes on above": -10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newBackupCluster(t)
			last := uint64(0)
			for range 20 {
				last = submitOne(t, c.nodes...).Index
			}
			c.ensureSame()
			c.plantSnapshot(0, saved, uint64(int(last)+above), c.nodes[0].currentTerm()+1)
			c.close(c.others(0)...)
			cfg := c.cfgs[0]
			if _, err := Recover(RecoverConfig{DataDir: cfg.DataDir, Logger: cfg.Logger}); err != nil {
				t.Fatal(err)
			}
			cfg.InitialCluster, cfg.Registerer = nil, testConfig(t, "", "", "").Registerer
			n := openNode(t, cfg)
			submitOne(t, n)
			if tasks, _ := tasksAt(n); tasks != savedTasks+1 {
				t.Errorf("%d tasks, want %d", tasks, savedTasks+1)
			}
		})
	}
}

// A backup whose state would not fit into memory is refused before anything is written.
func TestRestoreBackup_tooLarge(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	cfg := testConfig(t, "n1", t.TempDir(), "127.0.0.1:0")
	cfg.Bootstrap, cfg.MemoryLimit = true, 1000
	n := openNode(t, cfg)
	leaderOf(t, n)
	var full *nodes.Overload
	if _, err := n.RestoreBackup(context.Background(), bytes.NewReader(saved)); !errors.As(err, &full) || full.Bound != nodes.BoundMemory {
		t.Errorf("restore: %v, want an overload of the memory", err)
	}
	if tasks, under := tasksAt(n); tasks != 0 || under {
		t.Errorf("%d tasks, a restore is under way: %t", tasks, under)
	}
}

// A node whose snapshot was never agreed on by a majority, and whose log is empty, stops instead
// of accepting the cluster's log from its first entry on.
func TestLogStore_otherHistory(t *testing.T) {
	t.Parallel()
	saved := savedBackup(t)
	c := newBackupCluster(t)
	last := uint64(0)
	for range 20 {
		last = submitOne(t, c.nodes...).Index
	}
	c.ensureSame()
	leader := leaderOf(t, c.nodes...)
	at := 0
	for i, n := range c.nodes {
		if n != leader {
			at = i
		}
	}
	c.plantSnapshot(at, saved, last+100, leader.currentTerm())
	stopped := make(chan error, 1)
	c.cfgs[at].Registerer = testConfig(t, "", "", "").Registerer
	c.cfgs[at].Fatal = func(err error) {
		select {
		case stopped <- err:
		default:
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := Open(ctx, c.cfgs[at])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close(ctx) }() // its stores have failed
	select {
	case err := <-stopped:
		if !errors.Is(err, storage.ErrOtherHistory) {
			t.Errorf("it stopped by %v", err)
		}
	case <-ctx.Done():
		t.Error("it does not stop")
	}
	if first, err := n.logs.FirstIndex(); err != nil || first != 0 {
		t.Errorf("its log begins at %d, %v; want none", first, err)
	}
	submitOne(t, c.others(at)...)
}

// plantSnapshot closes the node at that index and makes the newest snapshot in its folder the
// backup's state, up to an entry with that index and term.
func (c *backupCluster) plantSnapshot(at int, saved []byte, index, term uint64) {
	c.t.Helper()
	n := c.nodes[at]
	backup, err := fsm.ReadBackup(bytes.NewReader(saved), int64(len(saved)))
	if err != nil {
		c.t.Fatal(err)
	}
	g, err := n.backups.graft(backup, fsm.Ground{Level: fsm.FeatureLevel(), NextID: 1, NextToken: 1})
	if err != nil {
		c.t.Fatal(err)
	}
	defer g.Close()
	f := n.raft.GetConfiguration()
	if err := f.Error(); err != nil {
		c.t.Fatal(err)
	}
	sink, err := n.stores.Snapshots.Create(raft.SnapshotVersionMax, index, term, f.Configuration(), 1, n.parts.Transport)
	if err == nil {
		_, err = io.Copy(sink, g.Reader())
	}
	if err == nil {
		err = sink.Close()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.close(n)
}

// plantEntry writes an entry of the last one's term at the end of the log of the node at that
// index, which is closed.
func (c *backupCluster) plantEntry(at int, entry []byte) {
	c.t.Helper()
	cfg := c.cfgs[at]
	dir, err := storage.OpenDir(cfg.DataDir, cfg.NodeID)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := storage.Open(dir, storage.Config{Logger: cfg.Logger, Fatal: cfg.Fatal})
	if err != nil {
		c.t.Fatal(err)
	}
	var last raft.Log
	index, err := s.Log.LastIndex()
	if err == nil {
		err = s.Log.GetLog(index, &last)
	}
	if err == nil {
		err = s.Log.StoreLog(&raft.Log{Index: index + 1, Term: last.Term, Type: raft.LogCommand, Data: entry})
	}
	if err = errors.Join(err, s.Close(), dir.Close()); err != nil {
		c.t.Fatal(err)
	}
}
