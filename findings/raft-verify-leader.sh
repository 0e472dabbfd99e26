#!/bin/bash
# hashicorp/raft v1.7.3: VerifyLeader, which "may be used to prevent returning stale data", counts
# answers to heartbeats that were sent before it was called. If they travel for a while, it says
# that a node leads which has been replaced in the meantime, so a read after it misses what the new
# leader has acknowledged before. Only the leader's lease, by its own clock, is in the way.
# claimq numbers its messages before it sends them, and counts answers to later ones alone
# (docs/adr/0005, cluster/confirm/confirmer.go).
# Source: heartbeat in replication.go calls notifyAll for every answer; verifyLeader in raft.go adds
# the call to those that it notifies, without a mark of when it was made.
# Three real nodes on loopback; the one that led has a longer lease than the others, as if its clock
# were slow. Needs Go and its proxy. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// node is a Raft node whose state is the list of what was applied.
type node struct {
	*raft.Raft
	log   *raft.InmemStore
	trans *link
	mu    sync.Mutex
	state []string
}

func (n *node) Apply(l *raft.Log) any {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = append(n.state, string(l.Data))
	return nil
}
func (n *node) applied() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.state, ", ")
}
func (n *node) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("none") }
func (n *node) Restore(io.ReadCloser) error         { return errors.New("none") }

// link is a transport over TCP. While held is not nil, node a's heartbeats are sent and answered,
// but a gets the answers only when it is closed. Nothing else passes between a and the others.
type link struct {
	*raft.NetworkTransport
	from raft.ServerID
}

var (
	mu      sync.Mutex
	held    chan struct{}
	answers = map[raft.ServerID]bool{} // from whom an answer is held
	errCut  = errors.New("cut")
)

func holding() chan struct{} {
	mu.Lock()
	defer mu.Unlock()
	return held
}

func (l *link) cut(to raft.ServerID) bool { return holding() != nil && (l.from == "a" || to == "a") }

func (l *link) AppendEntries(id raft.ServerID, to raft.ServerAddress, a *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse) error {
	heartbeat := len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.LeaderCommitIndex == 0
	h := holding()
	if h == nil || l.from != "a" || !heartbeat {
		if l.cut(id) {
			return errCut
		}
		return l.NetworkTransport.AppendEntries(id, to, a, r)
	}
	err := l.NetworkTransport.AppendEntries(id, to, a, r)
	mu.Lock()
	answers[id] = err == nil && r.Success
	mu.Unlock()
	<-h
	return err
}
func (l *link) RequestVote(id raft.ServerID, to raft.ServerAddress, a *raft.RequestVoteRequest, r *raft.RequestVoteResponse) error {
	if l.cut(id) {
		return errCut
	}
	return l.NetworkTransport.RequestVote(id, to, a, r)
}
func (l *link) RequestPreVote(id raft.ServerID, to raft.ServerAddress, a *raft.RequestPreVoteRequest, r *raft.RequestPreVoteResponse) error {
	if l.cut(id) {
		return errCut
	}
	return l.NetworkTransport.RequestPreVote(id, to, a, r)
}
func (l *link) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func main() {
	nodes := map[raft.ServerID]*node{}
	var servers []raft.Server
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		t := must(raft.NewTCPTransport("127.0.0.1:0", nil, 2, time.Second, io.Discard))
		nodes[id] = &node{log: raft.NewInmemStore(), trans: &link{t, id}}
		servers = append(servers, raft.Server{ID: id, Address: t.LocalAddr()})
	}
	a, b := nodes["a"], nodes["b"]
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		n, c := nodes[id], raft.DefaultConfig()
		c.LocalID, c.Logger = id, hclog.NewNullLogger()
		if id == "a" {
			c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 4*time.Second, 4*time.Second, 4*time.Second
		}
		check(raft.BootstrapCluster(c, n.log, n.log, raft.NewInmemSnapshotStore(), n.trans, raft.Configuration{Servers: servers}))
		n.Raft = must(raft.NewRaft(c, n, n.log, n.log, raft.NewInmemSnapshotStore(), n.trans))
	}
	leads := func(n *node) func() bool { return func() bool { return n.State() == raft.Leader } }
	others := func() *node {
		for _, n := range []*node{b, nodes["c"]} {
			if n.State() == raft.Leader {
				return n
			}
		}
		return nil
	}
	await(func() bool { return others() != nil })
	check(others().LeadershipTransferToServer("a", servers[0].Address).Error())
	await(leads(a))
	check(a.Raft.Apply([]byte("start"), time.Second).Error())
	await(func() bool { return others() == nil })

	mu.Lock()
	held = make(chan struct{})
	mu.Unlock()
	await(func() bool { mu.Lock(); defer mu.Unlock(); return answers["b"] && answers["c"] })
	await(func() bool { return others() != nil })
	check(others().Raft.Apply([]byte("acknowledged"), time.Second).Error())
	fmt.Println("the new leader has acknowledged an entry")
	verified := a.VerifyLeader()
	time.AfterFunc(100*time.Millisecond, func() { close(held) }) // once it is registered
	fmt.Printf("asked after that, whether it leads, a says: %v; its state: %s\n", verified.Error(), a.applied())
}

func await(met func() bool) {
	for end := time.Now().Add(time.Minute); !met(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			panic("nothing happened")
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
GO
printf 'module verify\ngo 1.26\nrequire (\n\tgithub.com/hashicorp/go-hclog v1.6.3\n\tgithub.com/hashicorp/raft v1.7.3\n)\n' >go.mod
go mod tidy >tidy.txt 2>&1 || { cat tidy.txt; exit 1; }
go run . | tee out.txt
grep -q '^asked after that, whether it leads, a says: <nil>; its state: start$' out.txt
echo "seen: as the comment says"
