package confirm

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// errVoteGate says why a node takes no part in elections yet.
var errVoteGate = errors.New("this node does not vote until a majority has said that its data folder is no old copy")

// VoteGate keeps a node out of elections until it is opened: the node grants no vote, asks
// for none, and accepts no leadership. It follows meanwhile.
type VoteGate struct {
	once   sync.Once
	opened chan struct{} // closed by Open
}

// NewVoteGate returns a closed gate.
func NewVoteGate() *VoteGate { return &VoteGate{opened: make(chan struct{})} }

// Open lets the node vote from now on. Further calls do nothing.
func (g *VoteGate) Open() { g.once.Do(func() { close(g.opened) }) }

// IsOpen reports whether the node may vote.
func (g *VoteGate) IsOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// refuses reports whether the gate, while it is closed, refuses a message of a peer.
func (g *VoteGate) refuses(command any) bool {
	switch command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest, *raft.TimeoutNowRequest:
		return !g.IsOpen()
	}
	return false
}

// GatedTransport is Raft's transport behind a VoteGate. Its goroutine ends with Close.
type GatedTransport struct {
	raft.Transport
	gate  *VoteGate
	loop  chan raft.RPC
	done  chan struct{}
	ended chan struct{}
	once  sync.Once
}

// Gated puts the gate before a transport, which it takes over.
func Gated(t raft.Transport, gate *VoteGate) *GatedTransport {
	g := &GatedTransport{Transport: t, gate: gate, loop: make(chan raft.RPC), done: make(chan struct{}), ended: make(chan struct{})}
	go g.pass()
	return g
}

// pass forwards incoming messages.
func (g *GatedTransport) pass() {
	defer close(g.ended)
	in := g.Transport.Consumer()
	for {
		select {
		case rpc := <-in:
			if g.gate.refuses(rpc.Command) {
				rpc.Respond(nil, errVoteGate)
				continue
			}
			select {
			case g.loop <- rpc:
			case <-g.done:
				return
			}
		case <-g.done:
			return
		}
	}
}

// Consumer implements raft.Transport.
func (g *GatedTransport) Consumer() <-chan raft.RPC { return g.loop }

// RequestVote implements raft.Transport.
func (g *GatedTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if !g.gate.IsOpen() {
		return errVoteGate
	}
	return g.Transport.RequestVote(id, target, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (g *GatedTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if !g.gate.IsOpen() {
		return errVoteGate
	}
	return g.Transport.(raft.WithPreVote).RequestPreVote(id, target, args, resp)
}

// Close implements raft.WithClose.
func (g *GatedTransport) Close() error {
	g.once.Do(func() { close(g.done) })
	<-g.ended
	return CloseTransport(g.Transport)
}
