package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/cluster/peer/porttest"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// copiedFolder copies a data folder that is not in use.
func copiedFolder(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// over returns cfg for another start, over the folder dir. Fatal errors go to the channel.
func over(t *testing.T, cfg Config, dir string) (Config, chan error) {
	ended := make(chan error, 1)
	cfg.DataDir, cfg.Registerer = dir, testConfig(t, "", "", "").Registerer
	cfg.Fatal = func(err error) {
		select {
		case ended <- err:
		default:
		}
	}
	return cfg, ended
}

// endOf waits for the fatal error of a process, see over.
func endOf(t *testing.T, ended <-chan error) (err error) {
	t.Helper()
	eventually(t, "the node to end itself", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})
	return err
}

// A folder that was copied, and is put back after its node has run on, is found out before
// it votes, however often that is tried. The newest folder continues.
func TestOpen_oldCopyIsFoundOut(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	at := slices.Index(c.nodes, c.follower())
	cfg := c.cfgs[at]
	c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "a"}}})
	eventually(t, "all to have started once", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.dir.Identity().Start.Number == 0 })
	})
	closeNode(t, c.nodes[at])
	old := copiedFolder(t, cfg.DataDir)

	again, ended := over(t, cfg, cfg.DataDir)
	newest := openNode(t, again)
	eventually(t, "the node to vote after its restart", newest.gate.IsOpen)
	c.nodes[at] = newest
	acknowledged := c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "a"}}})
	eventually(t, "it to have what was acknowledged", func() bool { return newest.fsm.AppliedIndex() >= acknowledged.Index })
	closeNode(t, newest)
	select {
	case err := <-ended:
		t.Fatalf("the newest folder is not taken: %v", err)
	default:
	}

	for range 3 {
		again, ended := over(t, cfg, old)
		n := openNode(t, again)
		err := endOf(t, ended)
		if !errors.Is(err, ErrOldCopy) || !strings.Contains(err.Error(), "claimq cluster remove "+cfg.NodeID) || !strings.Contains(err.Error(), old) {
			t.Errorf("%v, want an ErrOldCopy that says what to do", err)
		}
		if n.gate.IsOpen() {
			t.Error("an old copy votes")
		}
		closeNode(t, n)
	}

	// A copy of the newest folder is as good as the original, once.
	moved := copiedFolder(t, cfg.DataDir)
	again, ended = over(t, cfg, moved)
	n := openNode(t, again)
	eventually(t, "a copy of the newest to vote", n.gate.IsOpen)
	closeNode(t, n)
	select {
	case err := <-ended:
		t.Fatalf("a copy of the newest is not taken: %v", err)
	default:
	}
	again, ended = over(t, cfg, cfg.DataDir)
	openNode(t, again)
	if err := endOf(t, ended); !errors.Is(err, ErrOldCopy) {
		t.Errorf("the folder that the copy was made of: %v", err)
	}
}

// So does one that was copied before its node had any data: it does not even know that it is
// a voter, and would vote for any candidate.
func TestOpen_oldCopyWithoutData(t *testing.T) {
	t.Parallel()
	c := unopenedBackupCluster(t)
	openFolder(t, c.cfgs[0].DataDir, storage.Config{}).close(t)
	old := copiedFolder(t, c.cfgs[0].DataDir)
	c.open()
	c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "a"}}})
	eventually(t, "the others to know of its start", func() bool { return c.nodes[0].dir.Identity().Start.Number > 0 && c.nodes[0].gate.IsOpen() })
	closeNode(t, c.nodes[0])
	again, ended := over(t, c.cfgs[0], old)
	n := openNode(t, again)
	if n.gate.IsOpen() {
		t.Error("it votes before anybody was asked")
	}
	if err := endOf(t, ended); !errors.Is(err, ErrOldCopy) {
		t.Errorf("%v, want an ErrOldCopy", err)
	}
	if n.gate.IsOpen() {
		t.Error("an old copy votes")
	}
}

// Such a copy does not create a second cluster either, while the first one looks for the
// node.
func TestOpen_oldCopyWithoutDataBootstraps(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	first := testConfig(t, "n1", t.TempDir(), addrs[0])
	first.Bootstrap = true
	openFolder(t, first.DataDir, storage.Config{}).close(t)
	old := copiedFolder(t, first.DataDir)
	nodes := []*Node{openNode(t, first)}
	token := joinTokenOf(t, nodes[0])
	for i, addr := range addrs[1:] {
		cfg := testConfig(t, fmt.Sprintf("n%d", i+2), t.TempDir(), addr)
		cfg.Join, cfg.JoinToken = addrs[:1], token
		nodes = append(nodes, openNode(t, cfg))
	}
	eventually(t, "all to vote", func() bool { return len(nodes[0].votersNow()) == 3 })
	closeNode(t, nodes[0])
	leaderOf(t, nodes[1:]...)
	again, _ := over(t, first, old)
	again.haste = 0 // the leader, which dials it, has the usual time
	n, err := Open(t.Context(), again)
	if !errors.Is(err, joining.ErrNotAMember) {
		t.Errorf("error %v, want %v", err, joining.ErrNotAMember)
	}
	if err == nil {
		closeNode(t, n)
	}
}

// An old copy that passed because no node that answered knew better is found out once one
// that does is back.
func TestOpen_oldCopyIsFoundOutLater(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	at := slices.Index(c.nodes, c.follower())
	knows, knowsNot := (at+1)%3, (at+2)%3
	eventually(t, "all to have started once", func() bool {
		return !slices.ContainsFunc(c.nodes, func(n *Node) bool { return n.dir.Identity().Start.Number == 0 })
	})
	closeNode(t, c.nodes[at])
	old := copiedFolder(t, c.cfgs[at].DataDir)
	closeNode(t, c.nodes[knowsNot])
	again, _ := over(t, c.cfgs[at], c.cfgs[at].DataDir)
	newest := openNode(t, again)
	eventually(t, "the node to vote after its restart", newest.gate.IsOpen)
	closeNode(t, newest)
	closeNode(t, c.nodes[knows])

	again, _ = over(t, c.cfgs[knowsNot], c.cfgs[knowsNot].DataDir)
	openNode(t, again)
	again, ended := over(t, c.cfgs[at], old)
	again.Logger.SetLevel(hclog.Debug) // says whom it asked in vain
	passed := openNode(t, again)
	eventually(t, "the old copy to pass", passed.gate.IsOpen)
	again, _ = over(t, c.cfgs[knows], c.cfgs[knows].DataDir)
	openNode(t, again)
	if err := endOf(t, ended); !errors.Is(err, ErrOldCopy) {
		t.Errorf("%v, want an ErrOldCopy", err)
	}
}

// A copy of a running node's folder that is started at another address ends before it votes,
// and what it told the others does not hurt the node.
func TestOpen_copyBesideTheNode(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	at := slices.Index(c.nodes, c.follower())
	cfg := c.cfgs[at]
	closeNode(t, c.nodes[at])
	copied := copiedFolder(t, cfg.DataDir)
	again, ended := over(t, cfg, cfg.DataDir)
	original := openNode(t, again)
	eventually(t, "the node to vote after its restart", original.gate.IsOpen)
	identity, err := os.ReadFile(filepath.Join(cfg.DataDir, storage.IdentityFile))
	if err != nil {
		t.Fatal(err)
	}
	// So it is like one that was copied while the node runs.
	if err := os.WriteFile(filepath.Join(copied, storage.IdentityFile), identity, 0o600); err != nil {
		t.Fatal(err)
	}

	beside, besideEnded := over(t, cfg, copied)
	beside.PeerAddr = freeAddrs(t, 1)[0]
	n := openNode(t, beside)
	if err := endOf(t, besideEnded); !errors.Is(err, ErrCopyBeside) || !strings.Contains(err.Error(), cfg.PeerAddr) {
		t.Errorf("%v, want an ErrCopyBeside", err)
	}
	if n.gate.IsOpen() {
		t.Error("a copy votes beside the node that it is of")
	}
	closeNode(t, n)
	closeNode(t, original)
	again, _ = over(t, cfg, cfg.DataDir)
	eventually(t, "the node to vote once more", openNode(t, again).gate.IsOpen)
	select {
	case err := <-ended:
		t.Errorf("the node itself ended: %v", err)
	default:
	}
}

// A node that is paused while a copy of its folder starts elsewhere ends itself when it goes
// on. Until then its vote does not help a candidate, because those know of the copy.
func TestNode_pausedWhileACopyStarts(t *testing.T) {
	t.Parallel()
	dir := disktest.MemoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		c := newSoakCluster(t, 1, dir, &soakPlan{nodes: 3, wal: []int{4 << 10, 4 << 10, 4 << 10}, snapshotEvery: 1 << 40})
		defer func() {
			c.close()
			if t.Failed() {
				t.Logf("everything that happened:\n%s", c.log.text())
			}
			c.closeLog()
		}()
		c.checkCopyBeside()
	})
}

// A node without a majority follows and tells others of its start, but does not vote; when
// one other starts, too, both vote.
func TestOpen_votesOnceAMajorityHasAnswered(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	c.propose(command.Submit{Tasks: []fsm.NewTask{{Type: "a"}}})
	for _, n := range c.nodes {
		closeNode(t, n)
	}
	var nodes []*Node
	for _, cfg := range c.cfgs[:2] {
		cfg.Registerer = testConfig(t, "", "", "").Registerer
		nodes = append(nodes, openNode(t, cfg))
		if len(nodes) == 1 {
			eventually(t, "it to look for a leader", func() bool { return nodes[0].raft.State() == raft.Candidate })
			if nodes[0].gate.IsOpen() {
				t.Error("a node votes that nobody has answered")
			}
		}
	}
	leaderOf(t, nodes...)
	for _, n := range nodes {
		if !n.gate.IsOpen() {
			t.Errorf("%s does not vote", n.NodeID())
		}
	}
}

// An answer that cannot be stored is not given, because it would be forgotten.
func TestServeStarts_answersWhatIsOnDisk(t *testing.T) {
	t.Parallel()
	s, err := storage.OpenStarts(filepath.Join(t.TempDir(), "gone"))
	if err != nil {
		t.Fatal(err)
	}
	port := porttest.Open(t, "n2", func(*peer.Config) {})
	serveStarts(port, s, "uuid-2")
	asker := porttest.Open(t, "n1", func(*peer.Config) {})
	if answer, err := asker.Call(context.Background(), port.Addr(), callStart, []byte(`{"number":1,"nonce":"a"}`)); err == nil {
		t.Errorf("answered: %s", answer)
	}
	if _, err := asker.Call(context.Background(), port.Addr(), callStart, []byte(`1`)); err == nil {
		t.Error("nonsense was answered")
	}
}
