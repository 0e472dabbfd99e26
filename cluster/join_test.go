package cluster

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/joining"
	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// joinTokenOf returns a function that makes a join token of the leader's cluster, for all
// nodes of a test.
func joinTokenOf(t *testing.T, leader *Node) func() (string, error) {
	t.Helper()
	token := "the join token of " + t.Name()
	hash := sha256.Sum256([]byte(token))
	eventually(t, "a join token", func() bool {
		p, err := leader.Propose(t.Context(), command.SetJoinToken{Hash: hash[:], LifeMS: 3_600_000, Uses: fsm.JoinTokenUsesMax})
		return err == nil && p.Result.Code == ""
	})
	return tokenIs(token)
}

func tokenIs(token string) func() (string, error) {
	return func() (string, error) { return token, nil }
}

func nodeIDs(n *Node) (ids []string) {
	for _, v := range n.Cluster(context.Background()).Nodes {
		ids = append(ids, v.NodeID)
	}
	return ids
}

// opened is the result of opening a node in the background.
type opened struct {
	node *Node
	err  error
}

func openBeside(t *testing.T, cfg Config) <-chan opened {
	t.Helper()
	done := make(chan opened, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		n, err := Open(ctx, cfg)
		done <- opened{n, err}
	}()
	t.Cleanup(cancel)
	return done
}

// The join key alone does not let a node in: it waits for an operator's call, and is a
// member as soon as that is made.
func TestNode_joinWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 2)
	cfg := testConfig(t, "n1", t.TempDir(), addrs[0])
	cfg.Bootstrap = true
	n1 := openNode(t, cfg)
	leaderOf(t, n1)

	late := testConfig(t, "n2", t.TempDir(), addrs[1])
	late.Join = []string{addrs[0]}
	done := openBeside(t, late)
	record := fsm.NodeRecord{UUID: "01a200a5-61b0-745d-a23d-834977885529", NodeID: "n2", PeerAddr: addrs[1], Level: fsm.FeatureLevel()}
	if _, err := n1.joins.admitJoin(t.Context(), joining.Request{NodeRecord: record}); err == nil || !strings.Contains(err.Error(), "claimq cluster join n2 "+addrs[1]) {
		t.Errorf("a node without a token was answered %v", err)
	}
	// It says so when asked, which proves that it runs and waits.
	eventually(t, "n2 to answer", func() bool {
		who, err := ask[whoAnswer](t.Context(), n1.core, addrs[1], peer.CallWho, struct{}{})
		return err == nil && who.Waits
	})
	if got := nodeIDs(n1); len(got) != 1 {
		t.Fatalf("the members are %v", got)
	}
	eventually(t, "n2 to be joined by an operator", func() bool { return n1.JoinNode(t.Context(), "n2", addrs[1], true) == nil })
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	t.Cleanup(func() { closeNode(t, got.node) })
	if ids := nodeIDs(n1); len(ids) != 2 {
		t.Errorf("the members are %v", ids)
	}
}

// A join token admits the number of nodes that it allows, and no more.
func TestNode_joinsByAToken(t *testing.T) {
	t.Parallel()
	addrs := freeAddrs(t, 3)
	cfg := testConfig(t, "n1", t.TempDir(), addrs[0])
	cfg.Bootstrap = true
	n1 := openNode(t, cfg)
	hash := sha256.Sum256([]byte("good for one"))
	eventually(t, "a token for one", func() bool {
		_, err := n1.Propose(t.Context(), command.SetJoinToken{Hash: hash[:], LifeMS: 3_600_000, Uses: 1})
		return err == nil
	})
	node := func(i int, token string) Config {
		c := testConfig(t, []string{"n1", "n2", "n3"}[i], t.TempDir(), addrs[i])
		c.Join, c.JoinToken = []string{addrs[0]}, tokenIs(token)
		return c
	}
	refused := func(what, token string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n, err := Open(ctx, node(2, token))
		if err == nil {
			closeNode(t, n)
		}
		if err == nil || !strings.Contains(err.Error(), "claimq cluster token create") || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", what, err)
		}
	}
	before := n1.fsm.AppliedIndex()
	refused("a token that nobody made", "a guess")
	for _, e := range commandsSince(t, n1, before) {
		if _, ok := e.(command.UseJoinToken); ok {
			t.Error("a guess was written to the log")
		}
	}
	openNode(t, node(1, "good for one"))
	refused("a token that is used up", "good for one")
	if ids := nodeIDs(n1); len(ids) != 2 {
		t.Errorf("the members are %v", ids)
	}
}

// commandsSince returns the commands in the node's log after the index.
func commandsSince(t *testing.T, n *Node, index uint64) (all []command.Command) {
	t.Helper()
	last, err := n.logs.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	for i := index + 1; i <= last; i++ {
		var entry raft.Log
		if err := n.logs.GetLog(i, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Type != raft.LogCommand {
			continue
		}
		_, commands, err := command.DecodeEntry(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, commands...)
	}
	return all
}
