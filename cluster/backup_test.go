package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// backupCluster is three nodes with data folders.
type backupCluster struct {
	t     *testing.T
	cfgs  []Config
	nodes []*Node
}

func newBackupCluster(t *testing.T, logStore string) *backupCluster {
	t.Helper()
	c := unopenedBackupCluster(t, logStore)
	c.open()
	// A node that has heard nothing from a leader yet only knows the members that it met.
	eventually(t, "all nodes to follow or lead", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.Ready() != nil })
	})
	return c
}

// unopenedBackupCluster returns a cluster whose nodes are not open.
func unopenedBackupCluster(t *testing.T, logStore string) *backupCluster {
	t.Helper()
	c := &backupCluster{t: t}
	addrs := freeAddrs(t, 3)
	list := make(map[string]string)
	for i, addr := range addrs {
		list[fmt.Sprintf("n%d", i+1)] = addr
	}
	for i, addr := range addrs {
		cfg := testConfig(t, fmt.Sprintf("n%d", i+1), t.TempDir(), addr)
		cfg.InitialCluster, cfg.LogStore = list, logStore
		c.cfgs = append(c.cfgs, cfg)
	}
	return c
}

// open opens all nodes at once, because without data they wait for each other.
func (c *backupCluster) open() {
	c.t.Helper()
	c.nodes = make([]*Node, len(c.cfgs))
	failed := make(chan error, len(c.cfgs))
	for i := range c.cfgs {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			var err error
			c.nodes[i], err = Open(ctx, c.cfgs[i])
			failed <- err
		}()
	}
	for range c.cfgs {
		if err := <-failed; err != nil {
			c.t.Fatal(err)
		}
	}
	nodes := c.nodes
	c.t.Cleanup(func() {
		for _, n := range nodes {
			closeNode(c.t, n)
		}
	})
}

// restart closes all nodes, as abruptly as possible here, and opens them again.
func (c *backupCluster) restart() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // no leadership is transferred
	for i, n := range c.nodes {
		if err := n.Close(ctx); err != nil {
			c.t.Errorf("close %s: %v", n.NodeID(), err)
		}
		c.cfgs[i].Registerer = testConfig(c.t, "", "", "").Registerer
	}
	c.open()
}

// propose proposes at the leader until that succeeds.
func (c *backupCluster) propose(cmd command.Command) (p nodes.Proposed) {
	c.t.Helper()
	eventually(c.t, "a proposal to be taken", func() bool {
		var err error
		p, err = leaderOf(c.t, c.nodes...).Propose(context.Background(), cmd)
		if err != nil && !errors.Is(err, nodes.ErrNotLeader) && !errors.Is(err, nodes.ErrNoLeader) && !errors.Is(err, nodes.ErrLevel) {
			c.t.Fatalf("propose %T: %v", cmd, err)
		}
		return err == nil
	})
	return p
}

func (c *backupCluster) follower() *Node {
	c.t.Helper()
	leader := leaderOf(c.t, c.nodes...)
	for _, n := range c.nodes {
		if n != leader {
			return n
		}
	}
	return nil
}

// ensureSame waits until all nodes are at the same index, and compares their states.
func (c *backupCluster) ensureSame() {
	c.t.Helper()
	var hashes map[[16]byte]bool
	eventually(c.t, "all nodes at one index", func() bool {
		hashes = map[[16]byte]bool{}
		indexes := map[uint64]bool{}
		for _, n := range c.nodes {
			index, hash := n.StateHash()
			indexes[index], hashes[hash] = true, true
		}
		return len(indexes) == 1
	})
	if len(hashes) != 1 {
		c.t.Fatalf("%d states on %d nodes", len(hashes), len(c.nodes))
	}
}

func (c *backupCluster) task(id uint64) (task *fsm.Task) {
	c.t.Helper()
	eventually(c.t, "a read", func() bool {
		_, err := leaderOf(c.t, c.nodes...).ReadLinearizable(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
			if task = m.Get(id); task != nil {
				copied := *task
				task = &copied
			}
		})
		return err == nil
	})
	return task
}

// save returns a backup from the node.
func save(t *testing.T, n *Node) []byte {
	t.Helper()
	b, err := n.SaveBackup(context.Background(), false)
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	defer b.Release()
	var to bytes.Buffer
	if _, err := b.WriteTo(&to); err != nil {
		t.Fatalf("write backup: %v", err)
	}
	return to.Bytes()
}

// restoreInto restores the backup into a new cluster, and returns the index after it. If a
// busy machine costs the leader its leadership meanwhile, so that the outcome is unknown,
// it makes another cluster.
func restoreInto(t *testing.T, logStore string, backup []byte) (c *backupCluster, index uint64) {
	t.Helper()
	for tries := 1; ; tries++ {
		c = newBackupCluster(t, logStore)
		before, _ := c.nodes[0].StateHash()
		leader := leaderOf(t, c.nodes...)
		if _, err := c.follower().RestoreBackup(context.Background(), bytes.NewReader(backup)); !errors.Is(err, nodes.ErrNotLeader) {
			t.Errorf("restore at a follower: %v, want ErrNotLeader", err)
		}
		index, err := leader.RestoreBackup(context.Background(), bytes.NewReader(backup))
		if tries < 4 && (errors.Is(err, nodes.ErrOutcomeUnknown) || errors.Is(err, nodes.ErrNotLeader)) {
			t.Logf("again, the leadership was lost: %v", err)
			continue
		}
		if err != nil || index <= before {
			t.Fatalf("restore: index %d, %v; want one above %d", index, err, before)
		}
		return c, index
	}
}

// A backup of one cluster can be restored into another, over both log stores, and survives
// a restart of all nodes.
func TestRestoreBackup(t *testing.T) {
	t.Parallel()
	for _, logStore := range []string{storage.KindWAL, storage.KindBoltDB} {
		t.Run(logStore, func(t *testing.T) {
			t.Parallel()
			old := newBackupCluster(t, logStore)
			var ids []uint64
			for i := range 20 {
				ids = append(ids, old.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1"), Key: fmt.Sprint("k", i)}}}).Result.Submitted[0].Task.ID)
			}
			held := old.propose(command.ClaimNext{WorkerID: "w", Limit: 1, LeaseMS: 6_000}).Result.Claims[0]
			backup := save(t, old.follower())
			// The old cluster goes on, and the backup must not know of that.
			after := old.propose(command.ClaimNext{WorkerID: "w2", Limit: 1, LeaseMS: 60_000}).Result.Claims[0]
			afterID := old.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("2")}}}).Result.Submitted[0].Task.ID

			c, index := restoreInto(t, logStore, backup)
			for _, id := range ids {
				if c.task(id) == nil {
					t.Fatalf("task %d is not there", id)
				}
			}
			claimed := c.propose(command.ClaimNext{WorkerID: "w3", Limit: 1, LeaseMS: 60_000}).Result.Claims[0]
			if claimed.Token <= after.Token+1000 || claimed.Token >= 1<<53 || claimed.Task.ID == held.Task.ID {
				t.Errorf("claimed task %d with token %d, tokens up to %d were given out", claimed.Task.ID, claimed.Token, after.Token)
			}
			p := c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("2")}}})
			if id := p.Result.Submitted[0].Task.ID; id <= afterID+1000 || id >= 1<<53 {
				t.Errorf("a task got the id %d, ids up to %d were given out", id, afterID)
			}
			if p.Index <= index {
				t.Errorf("the index went from %d to %d", index, p.Index)
			}
			eventually(t, "the lease of the backup to end", func() bool { return c.task(held.Task.ID).Status == fsm.StatusPending })
			c.ensureSame()
			if again, err := leaderOf(t, c.nodes...).RestoreBackup(context.Background(), bytes.NewReader(backup)); !errors.Is(err, nodes.ErrNotEmpty) {
				t.Errorf("restore again: %d, %v; want ErrNotEmpty", again, err)
			}
			c.restart()
			if c.task(ids[0]) == nil || c.task(claimed.Task.ID).Status != fsm.StatusClaimed {
				t.Error("a task is lost after a restart of all")
			}
			c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("3")}}})
			c.ensureSame()
		})
	}
}

// A faulty backup changes nothing, and the cluster goes on.
func TestRestoreBackup_damaged(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), "127.0.0.1:0")
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	leaderOf(t, n)
	backup := save(t, n)
	refused := func(what string, b []byte, want error) {
		t.Helper()
		if _, err := n.RestoreBackup(context.Background(), bytes.NewReader(b)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	for i := range backup {
		bad := bytes.Clone(backup)
		bad[i] ^= 0x10
		if _, err := n.RestoreBackup(context.Background(), bytes.NewReader(bad)); !errors.Is(err, fsm.ErrCorrupt) && !errors.Is(err, fsm.ErrUnknownCommand) {
			t.Fatalf("byte %d of %d flipped: %v", i, len(backup), err)
		}
		refused(fmt.Sprintf("cut off at byte %d", i), backup[:i], fsm.ErrCorrupt)
	}
	broken := errors.New("the sender is gone")
	if _, err := n.RestoreBackup(context.Background(), io.MultiReader(bytes.NewReader(backup), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("a sender that goes: %v", err)
	}
	if g, err := n.ground(); err != nil || g.NextID != 1 || g.NextToken != 1 {
		t.Errorf("the state was changed: %+v, %v", g, err)
	}
	if files, err := filepath.Glob(filepath.Join(cfg.DataDir, "restore-*.tmp")); err != nil || len(files) > 0 {
		t.Errorf("left in the data folder: %v, %v", files, err)
	}
	submitOne(t, n)
	refused("into one with a task", backup, nodes.ErrNotEmpty)
}

// A task that is acknowledged while a backup is being restored exists afterwards: either it
// came first, and the restore was refused, or it came after.
func TestRestoreBackup_underLoad(t *testing.T) {
	t.Parallel()
	old := openNode(t, func() Config {
		cfg := testConfig(t, "old", t.TempDir(), "127.0.0.1:0")
		cfg.Bootstrap = true
		return cfg
	}())
	first := submitOne(t, old).Result.Submitted[0].Task.ID
	backup := save(t, old)
	for round := range 4 {
		c := newBackupCluster(t, storage.KindBoltDB)
		restored := make(chan error, 1)
		leader := leaderOf(t, c.nodes...)
		go func() {
			_, err := leader.RestoreBackup(context.Background(), bytes.NewReader(backup))
			restored <- err
		}()
		var ids []uint64
		for done := false; !done; {
			select {
			case err := <-restored:
				done = true
				switch there := c.task(first) != nil; {
				case errors.Is(err, nodes.ErrOutcomeUnknown): // a change of leader: both are possible
				case err != nil && !errors.Is(err, nodes.ErrNotEmpty) && !errors.Is(err, nodes.ErrNotLeader) && !errors.Is(err, nodes.ErrNoLeader):
					t.Errorf("restore: %v", err)
				case there != (err == nil) && len(ids) == 0:
					t.Errorf("restored: %v, and its task is there: %t", err, there)
				}
			default:
			}
			if len(ids) == 0 && round%2 == 0 && !done {
				continue // so that it can win
			}
			p, err := leaderOf(t, c.nodes...).Propose(context.Background(), submitKeyed(fmt.Sprint("r", len(ids))))
			if err == nil {
				ids = append(ids, p.Result.Submitted[0].Task.ID)
			}
		}
		for _, id := range ids {
			if c.task(id) == nil {
				t.Errorf("task %d was acknowledged and is lost", id)
			}
		}
		c.ensureSame()
	}
}

// A write that another leader acknowledges while a large backup is being prepared is not
// lost if the leadership has come back by then.
func TestRestoreBackup_leadershipCameBack(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t, storage.KindWAL)
	saved := save(t, leaderOf(t, c.nodes...))
	backup, err := fsm.ReadBackup(bytes.NewReader(saved), int64(len(saved)))
	if err != nil {
		t.Fatal(err)
	}
	leader, other := leaderOf(t, c.nodes...), c.follower()
	var acknowledged uint64
	err = c.between(leader, func() (uint64, error) {
		p, err := leader.prepareRestore(context.Background(), backup)
		if err != nil {
			return 0, err
		}
		defer p.grafted.Close()
		eventually(t, "the other to acknowledge", func() bool {
			c.move(other)
			p, err := other.Propose(context.Background(), submitKeyed("a"))
			if err == nil {
				acknowledged = p.Result.Submitted[0].Task.ID
			}
			return err == nil
		})
		var index uint64
		eventually(t, "an answer to the restore", func() bool { // a busy machine may hold an election meanwhile
			c.move(leader)
			index, err = leader.restorePrepared(context.Background(), p)
			return !errors.Is(err, nodes.ErrNotLeader)
		})
		return index, err
	})
	if !errors.Is(err, nodes.ErrNotEmpty) {
		t.Errorf("restore: %v, want ErrNotEmpty", err)
	}
	if c.task(acknowledged) == nil {
		t.Errorf("task %d was acknowledged and is lost", acknowledged)
	}
}

// move makes that node lead. On a busy machine the transfer may be late, or an election may
// interfere.
func (c *backupCluster) move(to *Node) {
	c.t.Helper()
	eventually(c.t, "the leadership to move", func() bool {
		for _, from := range c.nodes {
			if from != to && from.raft.State() == raft.Leader {
				_ = from.raft.LeadershipTransferToServer(raft.ServerID(to.uuid), raft.ServerAddress(to.record.PeerAddr)).Error()
			}
		}
		return to.raft.State() == raft.Leader
	})
}

func submitKeyed(key string) command.Submit {
	return command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Params: []byte("1"), Key: key}}}
}

// SaveBackup waits for a node that lags, and a node without a leader says so, unless its
// own state was requested.
func TestSaveBackup_withoutLeader(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t, storage.KindWAL)
	id := c.propose(submitKeyed("a")).Result.Submitted[0].Task.ID
	backup := save(t, c.follower())
	saved, err := fsm.ReadBackup(bytes.NewReader(backup), int64(len(backup)))
	if err != nil || saved.Stats().Counts[fsm.StatusPending] != 1 || saved.Info.ClusterID == "" {
		t.Fatalf("task %d: %+v, %v", id, saved, err)
	}
	last := c.follower()
	c.ensureSame()
	for _, n := range c.nodes {
		if n != last {
			closeNode(t, n)
		}
	}
	eventually(t, "the leader to be missed", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := last.SaveBackup(ctx, false)
		return errors.Is(err, nodes.ErrNoLeader)
	})
	b, err := last.SaveBackup(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
}

// A caller that requests a snapshot while one is being taken waits for that one, because a
// large one takes longer than a call.
func TestNode_snapshotNow_waitsForTheSame(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t, "")
	submitOne(t, c.nodes...)
	n := leaderOf(t, c.nodes...)
	n.fsm.PersistRate = 1 // a byte a second
	ended, end := context.WithCancel(context.Background())
	end()
	for range 2 {
		if _, err := n.snapshotNow(ended); !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Errorf("got %v, want %v", err, nodes.ErrOutcomeUnknown)
		}
	}
}
