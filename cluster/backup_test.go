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

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/proof"
	"github.com/claimq/claimq/nodes"
)

// backupCluster is three nodes with data folders.
type backupCluster struct {
	t     *testing.T
	cfgs  []Config
	nodes []*Node
}

func newBackupCluster(t *testing.T) *backupCluster {
	t.Helper()
	c := unopenedBackupCluster(t)
	c.open()
	// A node that has heard nothing from a leader yet only knows the members that it met.
	eventually(t, "all nodes to follow or lead", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.Ready() != nil })
	})
	return c
}

// unopenedBackupCluster returns a cluster whose nodes are not open.
func unopenedBackupCluster(t *testing.T) *backupCluster {
	t.Helper()
	c := &backupCluster{t: t}
	addrs := freeAddrs(t, 3)
	list := make(map[string]string)
	for i, addr := range addrs {
		list[fmt.Sprintf("n%d", i+1)] = addr
	}
	for i, addr := range addrs {
		cfg := testConfig(t, fmt.Sprintf("n%d", i+1), t.TempDir(), addr)
		cfg.InitialCluster = list
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
			ctx, cancel := context.WithTimeout(context.Background(), patience)
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

// close closes nodes, as abruptly as possible here: no leadership is transferred.
func (c *backupCluster) close(nodes ...*Node) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, n := range nodes {
		if err := n.Close(ctx); err != nil {
			c.t.Errorf("close %s: %v", n.NodeID(), err)
		}
	}
}

// restart closes all nodes and opens them again.
func (c *backupCluster) restart() {
	c.t.Helper()
	c.close(c.nodes...)
	for i := range c.cfgs {
		c.cfgs[i].Registerer = testConfig(c.t, "", "", "").Registerer
	}
	c.open()
}

// leaderChanged reports whether err may be due to a change of the leader, which can come at any
// time on a busy machine. If it is nodes.ErrOutcomeUnknown, what failed may have been done.
func leaderChanged(err error) bool {
	return errors.Is(err, nodes.ErrNotLeader) || errors.Is(err, nodes.ErrNoLeader) || errors.Is(err, nodes.ErrOutcomeUnknown)
}

// propose proposes at the leader until the outcome is known, so cmd may be applied twice unless it
// has a key or a request id.
func (c *backupCluster) propose(cmd command.Command) (p nodes.Proposed) {
	c.t.Helper()
	eventually(c.t, "a proposal to be taken", func() bool {
		var err error
		p, err = leaderOf(c.t, c.nodes...).Propose(context.Background(), cmd)
		if err != nil && !leaderChanged(err) {
			c.t.Fatalf("propose %T: %v", cmd, err)
		}
		return err == nil
	})
	return p
}

// claim claims a task, the same one for the same worker.
func (c *backupCluster) claim(worker string, lease time.Duration) fsm.Claim {
	c.t.Helper()
	p := c.propose(command.ClaimNext{WorkerID: worker, Limit: 1, LeaseMS: lease.Milliseconds(), RequestID: worker})
	return p.Result.Claims[0]
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
	var b *fsm.Backup
	eventually(t, "a backup", func() bool {
		var err error
		if b, err = n.SaveBackup(context.Background(), false); err != nil && !leaderChanged(err) {
			t.Fatalf("save: %v", err)
		}
		return err == nil
	})
	defer b.Release()
	var to bytes.Buffer
	if _, err := b.WriteTo(&to); err != nil {
		t.Fatalf("write backup: %v", err)
	}
	return to.Bytes()
}

// restore restores the backup at the leader, as restoredBy.
func (c *backupCluster) restore(backup []byte) (index uint64) {
	c.t.Helper()
	return c.restoredBy(func() (uint64, error) {
		return leaderOf(c.t, c.nodes...).RestoreBackup(context.Background(), bytes.NewReader(backup))
	})
}

// restoredBy repeats try until it has restored a backup, and returns an index before which that
// was done. After a try whose outcome is unknown, a cluster that is not empty has it.
func (c *backupCluster) restoredBy(try func() (uint64, error)) (index uint64) {
	c.t.Helper()
	unknown := false
	eventually(c.t, "a backup to be restored", func() bool {
		var err error
		index, err = try()
		var refused *nodes.MembershipRefused // a busy member may not say in time which level it knows
		switch {
		case err == nil:
			return true
		case unknown && errors.Is(err, nodes.ErrNotEmpty):
			for _, n := range c.nodes {
				index = max(index, n.AppliedIndex())
			}
			return true
		case !leaderChanged(err) && !errors.As(err, &refused):
			c.t.Fatalf("restore: %v", err)
		}
		unknown = unknown || errors.Is(err, nodes.ErrOutcomeUnknown)
		return false
	})
	return index
}

// refuses waits until the leader refuses to restore the backup, with that error.
func (c *backupCluster) refuses(backup []byte, want error) {
	c.t.Helper()
	eventually(c.t, "a restore to be refused", func() bool {
		_, err := leaderOf(c.t, c.nodes...).RestoreBackup(context.Background(), bytes.NewReader(backup))
		if !errors.Is(err, want) && !leaderChanged(err) {
			c.t.Fatalf("restore: %v, want %v", err, want)
		}
		return errors.Is(err, want)
	})
}

// A backup of one cluster can be restored into another, and survives
// a restart of all nodes.
func TestRestoreBackup(t *testing.T) {
	t.Parallel()
	old := newBackupCluster(t)
	var ids []uint64
	for i := range 20 {
		ids = append(ids, old.propose(submitKeyed(fmt.Sprint("k", i))).Result.Submitted[0].Task.ID)
	}
	held := old.claim("w", 6*time.Second)
	backup := save(t, old.follower())
	// The old cluster goes on, and the backup must not know of that.
	after := old.claim("w2", time.Minute)
	afterID := old.propose(submitKeyed("after")).Result.Submitted[0].Task.ID
	old.close(old.nodes...)

	c := newBackupCluster(t)
	before := leaderOf(t, c.nodes...).AppliedIndex()
	eventually(t, "a follower to refuse a restore", func() bool {
		_, err := c.follower().RestoreBackup(context.Background(), bytes.NewReader(nil))
		return errors.Is(err, nodes.ErrNotLeader)
	})
	index := c.restore(backup)
	if index <= before {
		t.Errorf("restored at index %d, want one above %d", index, before)
	}
	for _, id := range ids {
		if c.task(id) == nil {
			t.Fatalf("task %d is not there", id)
		}
	}
	claimed := c.claim("w3", time.Hour)
	if claimed.Token <= after.Token+1000 || claimed.Token >= 1<<53 || claimed.Task.ID == held.Task.ID {
		t.Errorf("claimed task %d with token %d, tokens up to %d were given out", claimed.Task.ID, claimed.Token, after.Token)
	}
	p := c.propose(submitKeyed("new"))
	if id := p.Result.Submitted[0].Task.ID; id <= afterID+1000 || id >= 1<<53 {
		t.Errorf("a task got the id %d, ids up to %d were given out", id, afterID)
	}
	if p.Index <= index {
		t.Errorf("the index went from %d to %d", index, p.Index)
	}
	eventually(t, "the lease of the backup to end", func() bool { return c.task(held.Task.ID).Status == fsm.StatusPending })
	c.ensureSame()
	c.refuses(backup, nodes.ErrNotEmpty)
	c.restart()
	if c.task(ids[0]) == nil || c.task(claimed.Task.ID).Status != fsm.StatusClaimed {
		t.Error("a task is lost after a restart of all")
	}
	c.propose(submitKeyed("newer"))
	c.ensureSame()
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
	if g, err := n.backups.ground(); err != nil || g.NextID != 1 || g.NextToken != 1 {
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
	for round := range proof.Count(2, 4) {
		c := newBackupCluster(t)
		restored := make(chan error)
		leader := leaderOf(t, c.nodes...)
		go func() {
			_, err := leader.RestoreBackup(context.Background(), bytes.NewReader(backup))
			restored <- err
		}()
		var ids []uint64
		submit := func() {
			p, err := leaderOf(t, c.nodes...).Propose(context.Background(), submitKeyed(fmt.Sprint("r", len(ids))))
			if err == nil {
				ids = append(ids, p.Result.Submitted[0].Task.ID)
			}
		}
		var err error
		if round%2 == 0 {
			err = <-restored // it comes first
		}
		for done := round%2 == 0; !done; {
			submit()
			select {
			case err = <-restored:
				done = true
			default:
			}
		}
		var refused *nodes.MembershipRefused // a busy member may not say in time which level it knows
		switch there := c.task(first) != nil; {
		case errors.Is(err, nodes.ErrOutcomeUnknown): // a change of leader: both are possible
		case err != nil && !errors.Is(err, nodes.ErrNotEmpty) && !leaderChanged(err) && !errors.As(err, &refused):
			t.Errorf("restore: %v", err)
		case there != (err == nil) && len(ids) == 0:
			t.Errorf("restored: %v, and its task is there: %t", err, there)
		}
		submit()
		for _, id := range ids {
			if c.task(id) == nil {
				t.Errorf("task %d was acknowledged and is lost", id)
			}
		}
		c.ensureSame()
		c.close(c.nodes...)
	}
}

// A write that another leader acknowledges while a large backup is being prepared is not
// lost if the leadership has come back by then.
func TestRestoreBackup_leadershipCameBack(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	saved := save(t, leaderOf(t, c.nodes...))
	backup, err := fsm.ReadBackup(bytes.NewReader(saved), int64(len(saved)))
	if err != nil {
		t.Fatal(err)
	}
	var acknowledged uint64
	eventually(t, "a restore to begin", func() bool {
		leader := leaderOf(t, c.nodes...)
		other := c.others(slices.Index(c.nodes, leader))[0]
		err = c.between(leader, func() (uint64, error) {
			p, err := leader.backups.prepareRestore(context.Background(), backup)
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
			eventually(t, "an answer to the restore", func() bool {
				c.move(leader)
				index, err = leader.backups.restorePrepared(context.Background(), p)
				return !leaderChanged(err)
			})
			return index, err
		})
		return acknowledged != 0 // else the leader was another one by then
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
	c := newBackupCluster(t)
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
	c := newBackupCluster(t)
	submitOne(t, c.nodes...)
	n := leaderOf(t, c.nodes...)
	n.fsm.PersistRate = 1 // a byte a second
	ended, end := context.WithCancel(context.Background())
	end()
	for range 2 {
		if _, err := n.snapshots.takeHere(ended); !errors.Is(err, nodes.ErrOutcomeUnknown) {
			t.Errorf("got %v, want %v", err, nodes.ErrOutcomeUnknown)
		}
	}
}
