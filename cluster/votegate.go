package cluster

import (
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// errVoteGate is why a node takes no part in elections yet.
var errVoteGate = errors.New("this node does not vote until a majority has said that its data folder is no old copy")

// voteGate keeps a node out of elections until it is opened: it grants no vote, asks
// for none, and takes no leadership that is handed to it. It follows meanwhile.
type voteGate struct {
	once   sync.Once
	opened chan struct{} // closed by open
}

func newVoteGate() *voteGate { return &voteGate{opened: make(chan struct{})} }

func (g *voteGate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *voteGate) isOpen() bool {
	select {
	case <-g.opened:
		return true
	default:
		return false
	}
}

// refuses reports whether what a peer sends has to wait for the gate.
func (g *voteGate) refuses(command any) bool {
	switch command.(type) {
	case *raft.RequestVoteRequest, *raft.RequestPreVoteRequest, *raft.TimeoutNowRequest:
		return !g.isOpen()
	}
	return false
}

// gatedTransport is Raft's transport behind a voteGate. Its goroutine ends with
// Close.
type gatedTransport struct {
	raft.Transport
	gate  *voteGate
	loop  chan raft.RPC
	done  chan struct{}
	ended chan struct{}
	once  sync.Once
}

func newGatedTransport(t raft.Transport, gate *voteGate) *gatedTransport {
	g := &gatedTransport{Transport: t, gate: gate, loop: make(chan raft.RPC), done: make(chan struct{}), ended: make(chan struct{})}
	go g.pass()
	return g
}

// pass hands on what comes in.
func (g *gatedTransport) pass() {
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
func (g *gatedTransport) Consumer() <-chan raft.RPC { return g.loop }

// RequestVote implements raft.Transport.
func (g *gatedTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if !g.gate.isOpen() {
		return errVoteGate
	}
	return g.Transport.RequestVote(id, target, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (g *gatedTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if !g.gate.isOpen() {
		return errVoteGate
	}
	return g.Transport.(raft.WithPreVote).RequestPreVote(id, target, args, resp)
}

// Close implements raft.WithClose.
func (g *gatedTransport) Close() error {
	g.once.Do(func() { close(g.done) })
	<-g.ended
	return closeTransport(g.Transport)
}
