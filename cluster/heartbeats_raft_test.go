package cluster

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/peer"
	"github.com/claimq/claimq/internal/simnet"
)

// raftBench is a node a with its log in memory, and two members b and c that the test
// plays. Messages go as in production: heartbeats over their own connections, to the
// transport's handler.
type raftBench struct {
	servers []raft.Server // a, b, c
	node    *Node
	log     *heldLog
	peers   map[raft.ServerID]*playedPeer
}

// playedPeer votes for any candidate if it is allowed to, and accepts all entries.
type playedPeer struct {
	*raft.NetworkTransport
	server raft.Server
	voting atomic.Bool  // including preelection votes
	asked  atomic.Int32 // requests for a vote
}

// heldLog is a log whose appends wait while gate is not nil.
type heldLog struct {
	*raft.InmemStore
	gate chan struct{}
}

func (l *heldLog) StoreLogs(logs []*raft.Log) error {
	if l.gate != nil {
		<-l.gate
	}
	return l.InmemStore.StoreLogs(logs)
}

// hold closes the gate until open is called, at the latest at the end of the test.
func (l *heldLog) hold(t *testing.T) (open func()) {
	l.gate = make(chan struct{})
	open = sync.OnceFunc(func() { close(l.gate) })
	t.Cleanup(open)
	return open
}

// hostLayer is a host of a network in memory, as a stream layer for Raft.
type hostLayer struct {
	net.Listener
	host *simnet.Host
}

func newHostLayer(t *testing.T, host *simnet.Host) hostLayer {
	t.Helper()
	listener, err := host.Listen("")
	if err != nil {
		t.Fatal(err)
	}
	return hostLayer{listener, host}
}

// Dial opens a connection to another host.
func (l hostLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return l.host.Dial(ctx, string(address))
}

// Close ends the host and its connections.
func (l hostLayer) Close() error {
	l.host.Kill()
	return nil
}

// newRaftBench must be called in a bubble.
func newRaftBench(t *testing.T) *raftBench {
	t.Helper()
	network := simnet.New(1, simnet.Weather{})
	b := &raftBench{log: &heldLog{InmemStore: raft.NewInmemStore()}, peers: make(map[raft.ServerID]*playedPeer)}
	transports := make(map[raft.ServerID]*raft.NetworkTransport)
	for _, id := range []raft.ServerID{"a", "b", "c"} {
		b.servers = append(b.servers, raft.Server{ID: id, Address: raft.ServerAddress(id)})
		transports[id] = peer.NewRaftTransport(newHostLayer(t, network.Host(string(id))), hclog.NewNullLogger())
	}
	for _, s := range b.servers[1:] {
		b.peers[s.ID] = &playedPeer{NetworkTransport: transports[s.ID], server: s}
		b.peers[s.ID].play(t)
	}
	n, err := OpenParts(testConfig(t, "a", "", ""), Parts{
		UUID: "a", Logs: b.log, Stable: b.log.InmemStore, Snapshots: raft.NewInmemSnapshotStore(), Transport: transports["a"], Servers: b.servers,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNode(t, n) })
	b.node = n
	return b
}

func (p *playedPeer) play(t *testing.T) {
	done, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		_ = p.Close()
		close(done)
		<-ended
	})
	go func() {
		defer close(ended)
		for {
			select {
			case rpc := <-p.Consumer():
				rpc.Respond(p.answer(rpc.Command), nil)
			case <-done:
				return
			}
		}
	}()
}

func (p *playedPeer) answer(command any) any {
	switch m := command.(type) {
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{Term: m.Term, Granted: p.voting.Load()}
	case *raft.RequestVoteRequest:
		p.asked.Add(1)
		return &raft.RequestVoteResponse{Term: m.Term, Granted: p.voting.Load()}
	case *raft.AppendEntriesRequest:
		return &raft.AppendEntriesResponse{Term: m.Term, Success: true, LastLog: m.PrevLogEntry + uint64(len(m.Entries))}
	default:
		return &raft.TimeoutNowResponse{}
	}
}

// send sends a, as the leader of term, a heartbeat or one entry. The channel gets the
// answer, nil if the call fails.
func (b *raftBench) send(from raft.ServerID, term uint64, entries ...*raft.Log) <-chan *raft.AppendEntriesResponse {
	p := b.peers[from]
	args := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(from), Addr: []byte(p.server.Address)},
		Term:      term, Entries: entries,
	}
	if len(entries) > 0 {
		args.PrevLogEntry = entries[0].Index - 1
		args.PrevLogTerm = 1
	}
	done := make(chan *raft.AppendEntriesResponse, 1)
	go func() {
		var resp raft.AppendEntriesResponse
		if err := p.AppendEntries("a", b.servers[0].Address, args, &resp); err != nil {
			done <- nil
			return
		}
		done <- &resp
	}()
	synctest.Wait()
	return done
}

// given returns the answer to send, or nil if it has not come yet.
func given(answer <-chan *raft.AppendEntriesResponse) *raft.AppendEntriesResponse {
	synctest.Wait()
	select {
	case resp := <-answer:
		return resp
	default:
		return nil
	}
}

// An idle leader learns of a later term from a heartbeat. It writes nothing in that term,
// because another one leads in it.
func TestHeartbeats_leaderHearsOfALaterTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newRaftBench(t)
		b.peers["b"].voting.Store(true)
		leaderOf(t, b.node)
		synctest.Wait() // Raft's loop is idle
		term := b.node.raft.CurrentTerm()

		resp := given(b.send("b", term+1))
		if resp == nil || !resp.Success || resp.Term != term+1 {
			t.Errorf("the answer is %+v", resp)
		}
		err := b.node.raft.Apply([]byte("whatever"), time.Second).Error()
		if err == nil {
			t.Error("the old leader takes an entry")
		}
		last, _ := b.log.LastIndex()
		for i := uint64(1); i <= last; i++ {
			var entry raft.Log
			if err := b.log.GetLog(i, &entry); err != nil {
				t.Fatal(err)
			}
			if entry.Term > term {
				t.Errorf("entry %d, a %v, has term %d; it led in %d", i, entry.Type, entry.Term, term)
			}
		}
	})
}

// A follower whose loop waits for its disk still answers its leader, but nothing more: any
// other content of a heartbeat waits for the loop.
func TestHeartbeats_loopHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newRaftBench(t)
		if resp := given(b.send("b", 5)); resp == nil || !resp.Success {
			t.Fatalf("the first heartbeat is answered by %+v", resp)
		}
		open := b.log.hold(t)
		entry := b.send("b", 5, &raft.Log{Index: 2, Term: 5, Type: raft.LogNoop})
		if resp := given(b.send("b", 5)); resp == nil || !resp.Success || resp.Term != 5 || resp.LastLog != 1 {
			t.Errorf("while the loop hangs the leader gets %+v", resp)
		}
		earlier, later := b.send("c", 4), b.send("c", 6)
		if len(entry)+len(earlier)+len(later) > 0 {
			t.Fatalf("while the loop hangs there are answers to an entry (%d), in an earlier term (%d), in a later one (%d)",
				len(entry), len(earlier), len(later))
		}
		if got := b.node.raft.CurrentTerm(); got != 5 {
			t.Errorf("while the loop hangs the term is %d", got)
		}
		open()
		if resp := given(entry); resp == nil || !resp.Success {
			t.Errorf("the entry is answered by %+v", resp)
		}
		if resp := given(earlier); resp == nil || resp.Success {
			t.Errorf("the earlier leader's is answered by %+v", resp)
		}
		if resp := given(later); resp == nil || !resp.Success || resp.Term != 6 {
			t.Errorf("the later leader's is answered by %+v", resp)
		}
	})
}

// A loop that hung for longer than its timeouts, while its leader's heartbeats were
// answered for it, does not start an election when it goes on.
func TestHeartbeats_loopHungLong(t *testing.T) {
	t.Parallel()
	for range 20 { // whether Raft looks at its timer first is random
		synctest.Test(t, func(t *testing.T) {
			b := newRaftBench(t)
			ticker := time.NewTicker(heartbeatTimeout / 10)
			defer ticker.Stop()
			beat := func(until time.Time) {
				for ; time.Now().Before(until); <-ticker.C {
					if resp := given(b.send("b", 5)); resp == nil || !resp.Success {
						t.Fatalf("a heartbeat is answered by %+v", resp)
					}
				}
			}
			beat(time.Now().Add(time.Second))
			open := b.log.hold(t)
			b.send("b", 5, &raft.Log{Index: 2, Term: 5, Type: raft.LogNoop})
			beat(time.Now().Add(contactMax + time.Second))
			if ms := b.node.lastContactMS(); ms > contactMax.Milliseconds() {
				t.Errorf("it says that it heard of its leader %d ms ago", ms)
			}
			open()
			beat(time.Now().Add(time.Second))
			if last := b.node.raft.LastIndex(); last != 2 {
				t.Errorf("its log ends at %d", last)
			}
			if got := b.node.raft.CurrentTerm(); got != 5 || b.peers["b"].asked.Load()+b.peers["c"].asked.Load() > 0 {
				t.Errorf("the term is %d, and votes were asked for", got)
			}
			if _, leader := b.node.raft.LeaderWithID(); leader != "b" {
				t.Errorf("it follows %q", leader)
			}
		})
	}
}
