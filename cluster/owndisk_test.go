package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// newGatedCluster returns three nodes with data folders whose disks can be held up.
func newGatedCluster(t *testing.T) (nodes []*Node, disks []*disktest.GatedLog) {
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
		disk := &disktest.GatedLog{}
		stores := openFolder(t, t.TempDir(), storage.Config{WrapLog: func(log raft.LogStore) raft.LogStore {
			disk.LogStore = log
			return disk
		}})
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

// While an entry is not on the leader's own disk, it is not applied on any node, even if
// all others have it: they and a leader that loses power could be outvoted by the third.
func TestLeader_ownDisk(t *testing.T) {
	t.Parallel()
	all, disks := newGatedCluster(t)
	leader := leaderOf(t, all...)
	propose := func() (nodes.Proposed, error) {
		return leader.Propose(context.Background(), command.Submit{Tasks: []fsm.NewTask{{Type: "mail"}}})
	}
	eventually(t, "a submit to be taken", func() bool { _, err := propose(); return err == nil })
	at := 0
	for i, n := range all {
		if n == leader {
			at = i
		}
	}
	before, _ := leader.logs.LastIndex()
	open := sync.OnceFunc(disks[at].Hold())
	t.Cleanup(open)
	type answer struct {
		nodes.Proposed
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		p, err := propose()
		answered <- answer{p, err}
	}()
	index := before + 1
	eventually(t, "Raft to take the entry for committed", func() bool { return leader.raft.CommitIndex() >= index })
	for range 10 { // an answer may be to an earlier message
		since := time.Now()
		for i, n := range all {
			eventually(t, "Raft to tell of it", func() bool {
				heard, _ := leader.raft.confirmer().LastHeard(raft.ServerID(n.uuid), leader.currentTerm())
				return i == at || heard.At.After(since)
			})
		}
	}
	for _, n := range all {
		if applied := n.fsm.AppliedIndex(); applied >= index {
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
		for _, n := range all {
			if n.fsm.AppliedIndex() < index {
				return false
			}
		}
		return true
	})
}
