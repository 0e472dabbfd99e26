#!/bin/bash
# hashicorp/raft v1.7.3: a transport that handles heartbeats by themselves, as Raft's own over TCP
# does, has them change the term under a leader that has not left its loop yet. The next entry it
# is given gets the new leader's term, at an index where the new leader has another entry. Raft
# compares entries by index and term, so it never replaces it: once all nodes are in touch again,
# the states of their machines differ for good, and Raft reports nothing.
# claimq never calls that handler (docs/adr/0015, cluster/confirm/heartbeats.go).
# Source: processHeartbeat in raft.go calls appendEntries, of which its comment says that only the
# main thread may; dispatchLogs reads the term anew. Raft's issue 695.
# Three real nodes on loopback; the one that led is out of touch for a moment, and has a longer
# lease than the others, as if its clock were slow. Needs Go and its proxy. Fails if the behaviour
# is no longer there.
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
	"sync/atomic"
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

// link is a transport over TCP that can be cut.
type link struct {
	*raft.NetworkTransport
	cut       func(to raft.ServerID, heartbeat bool) bool
	heartbeat func() // called after Raft's handler
}

var errCut = errors.New("cut")

func (l *link) AppendEntries(id raft.ServerID, to raft.ServerAddress, a *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse) error {
	if l.cut(id, len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.LeaderCommitIndex == 0) {
		return errCut
	}
	return l.NetworkTransport.AppendEntries(id, to, a, r)
}
func (l *link) RequestVote(id raft.ServerID, to raft.ServerAddress, a *raft.RequestVoteRequest, r *raft.RequestVoteResponse) error {
	if l.cut(id, false) {
		return errCut
	}
	return l.NetworkTransport.RequestVote(id, to, a, r)
}
func (l *link) RequestPreVote(id raft.ServerID, to raft.ServerAddress, a *raft.RequestPreVoteRequest, r *raft.RequestPreVoteResponse) error {
	if l.cut(id, false) {
		return errCut
	}
	return l.NetworkTransport.RequestPreVote(id, to, a, r)
}
func (l *link) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}
func (l *link) SetHeartbeatHandler(handle func(raft.RPC)) {
	l.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		handle(rpc)
		l.heartbeat()
	})
}

// phase: 0 all in touch; 1 a is cut off; 2 it gets the heartbeats of the others; 3 as 0.
var phase atomic.Int32

func main() {
	nodes := map[raft.ServerID]*node{}
	var servers []raft.Server
	var once sync.Once
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		t := must(raft.NewTCPTransport("127.0.0.1:0", nil, 2, time.Second, io.Discard))
		n := &node{log: raft.NewInmemStore(), trans: &link{NetworkTransport: t, heartbeat: func() {}}}
		n.trans.cut = func(to raft.ServerID, heartbeat bool) bool {
			switch p := phase.Load(); {
			case id == "a":
				return p == 1 || p == 2
			case to == "a":
				return p == 1 || p == 2 && !heartbeat
			}
			return false
		}
		nodes[id] = n
		servers = append(servers, raft.Server{ID: id, Address: t.LocalAddr()})
	}
	a, b := nodes["a"], nodes["b"]
	a.trans.heartbeat = func() {
		if phase.Load() == 2 {
			once.Do(func() {
				fmt.Println("a is asked for an entry and says:", a.Raft.Apply([]byte("from a"), time.Second).Error())
				phase.Store(3)
			})
		}
	}
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		n, c := nodes[id], raft.DefaultConfig()
		c.LocalID, c.Logger = id, hclog.NewNullLogger()
		if id == "a" {
			c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 20*time.Second, 20*time.Second, 20*time.Second
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

	phase.Store(1)
	await(func() bool { return others() != nil })
	check(others().Raft.Apply([]byte("from the new leader"), time.Second).Error())
	phase.Store(2)
	await(func() bool { return phase.Load() == 3 })
	await(func() bool { return others() != nil })
	check(others().Raft.Apply([]byte("end"), time.Second).Error())
	for _, n := range nodes {
		await(func() bool { return strings.HasSuffix(n.applied(), "end") })
	}
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		fmt.Printf("%s: %s\n", id, nodes[id].applied())
	}
	last, _ := a.log.LastIndex()
	for i := uint64(1); i <= last; i++ {
		var x, y raft.Log
		check(a.log.GetLog(i, &x))
		check(b.log.GetLog(i, &y))
		if x.Type != y.Type || string(x.Data) != string(y.Data) {
			fmt.Printf("entry %d: same term %t, a: %s %q, b: %s %q\n", i, x.Term == y.Term, x.Type, x.Data, y.Type, y.Data)
		}
	}
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
printf 'module heartbeat\ngo 1.26\nrequire (\n\tgithub.com/hashicorp/go-hclog v1.6.3\n\tgithub.com/hashicorp/raft v1.7.3\n)\n' >go.mod
go mod tidy >tidy.txt 2>&1 || { cat tidy.txt; exit 1; }
go run . | tee out.txt
grep -q '^a: start, from a, from the new leader, end$' out.txt
grep -q '^b: start, from the new leader, end$' out.txt
grep -q '^c: start, from the new leader, end$' out.txt
grep -q '^entry .*: same term true, a: LogCommand "from a", b: LogNoop ""$' out.txt
echo "seen: as the comment says"
