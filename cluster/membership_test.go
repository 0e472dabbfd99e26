package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/nodes"
)

// A nonvoter that was removed while the leader was about to promote it stays removed,
// because as an absent voter it could block every commit.
func TestLeadership_promotesNobodyAnew(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	eventually(t, "n1 to lead", n.IsLeader)
	n.leaders().checks.promote(n.leader.Load(), raft.Server{ID: "removed", Address: "127.0.0.1:1", Suffrage: raft.Nonvoter})
	if got := n.servers(); len(got) != 1 {
		t.Errorf("the members are %v, want n1 alone", got)
	}
}

// An operator's promotion, which waits until the node has caught up, does not add it again
// either.
func TestNode_promotesNobodyAnew(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	eventually(t, "n1 to lead", n.IsLeader)
	removed := nodes.NodeView{NodeRecord: fsm.NodeRecord{UUID: "removed", NodeID: "n2", PeerAddr: n.record.PeerAddr}, Suffrage: suffrageNonvoter}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var refused *nodes.MembershipRefused
	if err := n.changes.promoteMember(ctx, n.leader.Load(), removed); !errors.As(err, &refused) {
		t.Errorf("promote: %v, want it to be refused", err)
	}
	if got := n.servers(); len(got) != 1 {
		t.Errorf("the members are %v, want n1 alone", got)
	}
}

// A copy of a member's data folder that is started at another address does not get that
// member's place while the member runs: it may lack entries that the member has
// acknowledged, and both would vote. A member that has moved does get it.
func TestLeadership_movesNobodyToACopy(t *testing.T) {
	t.Parallel()
	c := newBackupCluster(t)
	leader := leaderOf(t, c.nodes...)
	at := slices.Index(c.nodes, c.follower())
	// moved returns the leader's address of a node that says that it is at addr now.
	moved := func(n *Node, addr string) (has raft.ServerAddress) {
		t.Helper()
		record := n.record
		record.PeerAddr = addr
		body, err := json.Marshal(standingQuestion{Record: record})
		if err != nil {
			t.Fatal(err)
		}
		leader := leaderOf(t, c.nodes...)
		if _, err := leader.standing.answerStanding(context.Background(), body); err != nil {
			t.Fatal(err)
		}
		for _, s := range leader.servers() {
			if string(s.ID) == n.uuid {
				has = s.Address
			}
		}
		return has
	}
	addrs := freeAddrs(t, 2)
	if has := moved(leader, addrs[0]); string(has) != leader.record.PeerAddr {
		t.Errorf("the leader is at %s now, by a copy's word", has)
	}

	closeNode(t, c.nodes[at])
	copied := c.cfgs[at]
	copied.DataDir, copied.PeerAddr, copied.Registerer = t.TempDir(), addrs[0], testConfig(t, "", "", "").Registerer
	if err := os.CopyFS(copied.DataDir, os.DirFS(c.cfgs[at].DataDir)); err != nil {
		t.Fatal(err)
	}
	copied.Fatal = func(error) {} // it is found out, and would end
	c.cfgs[at].Registerer = testConfig(t, "", "", "").Registerer
	original := openNode(t, c.cfgs[at])
	c.nodes[at] = original
	other := openNode(t, copied)
	if has := moved(other, addrs[0]); string(has) != original.record.PeerAddr {
		t.Errorf("the member is at %s now, where a copy of its folder runs", has)
	}
	closeNode(t, other)

	closeNode(t, original)
	again := c.cfgs[at]
	again.PeerAddr, again.Registerer = addrs[1], testConfig(t, "", "", "").Registerer
	here := openNode(t, again)
	c.nodes[at] = here
	eventually(t, "the member to be known where it has moved", func() bool { return string(moved(here, addrs[1])) == addrs[1] })
}

// A configuration that Raft refuses is refused with words and changes nothing: its outcome
// is not unknown.
func TestNode_refusesWhatRaftRefuses(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, "n1", t.TempDir(), freeAddrs(t, 1)[0])
	cfg.Bootstrap = true
	n := openNode(t, cfg)
	eventually(t, "n1 to lead", n.IsLeader)
	self := nodes.NodeView{NodeRecord: n.record, Suffrage: suffrageVoter}
	for name, c := range map[string]struct {
		change func() error
		want   string
	}{
		"remove the last voter": {func() error { return n.changes.removeMember(t.Context(), self) }, "need at least one voter"},
		"demote the last voter": {func() error { return n.changes.demoteMember(t.Context(), n.leader.Load(), self) }, "need at least one voter"},
		"add a node where another is": {func() error {
			return n.membership.change(t.Context(), func() raft.IndexFuture {
				return n.raft.AddNonvoter("uuid-2", raft.ServerAddress(n.record.PeerAddr), 0, changeQueueMax)
			})
		}, "found duplicate address"},
		"add a node without a name": {func() error {
			return n.membership.change(t.Context(), func() raft.IndexFuture { return n.raft.AddVoter("", "127.0.0.1:1", 0, changeQueueMax) })
		}, "empty ID"},
		"add a node without an address": {func() error {
			return n.membership.change(t.Context(), func() raft.IndexFuture { return n.raft.AddVoter("uuid-2", "", 0, changeQueueMax) })
		}, "empty address"},
		"change what has changed since": {func() error {
			return n.membership.change(t.Context(), func() raft.IndexFuture {
				return n.raft.AddVoter("uuid-2", "127.0.0.1:1", 1<<40, changeQueueMax)
			})
		}, "configuration changed since"},
	} {
		var refused *nodes.MembershipRefused
		if err := c.change(); !errors.As(err, &refused) || !strings.Contains(refused.Reason, c.want) || refused.Advice == "" {
			t.Errorf("%s: %v, want a refusal that says %q", name, err, c.want)
		}
	}
	if got := n.servers(); len(got) != 1 || string(got[0].ID) != n.uuid || got[0].Suffrage != raft.Voter {
		t.Errorf("the members are %v, want n1 alone", got)
	}
	var record fsm.NodeRecord
	n.fsm.Read(func(m *fsm.Machine) { record, _ = m.Node(n.uuid) })
	if record.Nonvoter {
		t.Error("the wish to demote n1 is left, though it was refused")
	}
}

// changeOf is a change with Raft's answer.
type changeOf struct {
	raft.IndexFuture
	index uint64
	err   error
}

func (c changeOf) Index() uint64 { return c.index }
func (c changeOf) Error() error  { return c.err }

// A change that was never written to the log has changed nothing; all other outcomes are
// unknown.
func TestChangeError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change changeOf
		want   error
	}{
		{changeOf{index: 7}, nil},
		{changeOf{err: raft.ErrNotLeader}, nodes.ErrNotLeader},
		{changeOf{err: raft.ErrLeadershipTransferInProgress}, nodes.ErrNotLeader},
		{changeOf{err: raft.ErrRaftShutdown}, nodes.ErrNotLeader},
		{changeOf{err: raft.ErrEnqueueTimeout}, nodes.ErrOverloaded},
		{changeOf{index: 7, err: raft.ErrLeadershipLost}, nodes.ErrOutcomeUnknown},
		{changeOf{index: 7, err: raft.ErrRaftShutdown}, nodes.ErrOutcomeUnknown},
		{changeOf{index: 7, err: errors.New("append to the log")}, nodes.ErrOutcomeUnknown},
	} {
		if err := changeError(c.change); !errors.Is(err, c.want) {
			t.Errorf("index %d, %v: %v, want %v", c.change.index, c.change.err, err, c.want)
		}
	}
}

// A caller that stops waiting for a change does not let the next one in before Raft has
// accepted it. Otherwise it might be made after a change that was decided later.
func TestNode_changeIsTakenUnderTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, err := newNode(Config{NodeID: "n"}.withDefaults(), Parts{UUID: "u"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // the caller has gone
		take, ended := make(chan struct{}), make(chan error)
		never := make(chan struct{})
		defer close(never)
		go func() {
			ended <- n.membership.change(ctx, func() raft.IndexFuture { <-take; return hangingChange{never: never} })
		}()
		synctest.Wait()
		select {
		case err := <-ended:
			t.Errorf("it ended before Raft took the change: %v", err)
			close(take)
		default:
			close(take)
			if err := <-ended; !errors.Is(err, nodes.ErrOutcomeUnknown) {
				t.Errorf("%v, want an unknown outcome", err)
			}
		}
	})
}

// A change that still waits for Raft when the node closes may be made, because Raft ends
// later.
func TestNode_changeWhileItCloses(t *testing.T) {
	t.Parallel()
	n, err := newNode(Config{NodeID: "n"}.withDefaults(), Parts{UUID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	n.cancel(errNodeClosed)
	never := make(chan struct{})
	defer close(never)
	err = n.membership.change(t.Context(), func() raft.IndexFuture {
		<-never
		return nil
	})
	if !errors.Is(err, nodes.ErrOutcomeUnknown) {
		t.Errorf("%v, want an unknown outcome", err)
	}
}

// hangingChange is accepted, but only answered when the test ends.
type hangingChange struct {
	raft.IndexFuture
	never <-chan struct{}
}

func (c hangingChange) Error() error { <-c.never; return raft.ErrLeadershipLost }
func (hangingChange) Index() uint64  { return 7 }
