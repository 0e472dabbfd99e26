package confirm

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// heartbeats ensures that messages of peers change Raft only in its main loop.
//
// Raft handles heartbeats on the transport's goroutines, so that a follower whose loop
// waits for its disk is not taken for dead. But its handler sets term and state
// concurrently with the loop: a leader that hears of a later term in the middle of an
// append writes the entry with that term, in which another node leads (hashicorp/raft#695).
// So that handler is never called. A heartbeat that changes nothing is answered here, only
// by reading; all others go through the loop like any message.
type heartbeats struct {
	loop chan raft.RPC // what Raft's main loop takes
	// told has capacity 1: a heartbeat answered here, so that the loop notes when it last
	// heard from the leader. One is as good as many.
	told   chan raft.RPC
	done   chan struct{} // closed by close
	passed chan struct{} // closed when pass has ended; nil if it never began
	// covered counts the offers of snapshots being answered here: one per leading or former
	// leading peer, because Raft sends one at a time.
	covered sync.WaitGroup

	// toldEvery is the shortest interval at which the loop is told of answered heartbeats: the
	// interval of an idle leader's heartbeats.
	toldEvery time.Duration

	mu         sync.Mutex // held while a heartbeat is answered
	closed     bool       // guarded by mu
	seam       *seam      // guarded by mu; nil while no Raft runs
	follower   follower   // guarded by mu; nil while no Raft runs
	answeredAt time.Time  // guarded by mu; when a heartbeat was last answered here
	toldAt     time.Time  // guarded by mu; when told last received one
}

// follower is the part of Raft's state that any goroutine may read.
type follower interface {
	State() raft.RaftState
	LeaderWithID() (raft.ServerAddress, raft.ServerID)
	CurrentTerm() uint64
	LastIndex() uint64
}

var _ follower = (*raft.Raft)(nil)

func newHeartbeats(toldEvery time.Duration) *heartbeats {
	return &heartbeats{toldEvery: toldEvery, loop: make(chan raft.RPC), told: make(chan raft.RPC, 1), done: make(chan struct{})}
}

// start begins to pass incoming messages on to the loop, until close.
func (h *heartbeats) start(in <-chan raft.RPC) {
	h.passed = make(chan struct{})
	go h.pass(in)
}

func (h *heartbeats) pass(in <-chan raft.RPC) {
	defer close(h.passed)
	for {
		select {
		case rpc := <-in:
			h.dispatch(rpc)
		case rpc := <-h.told:
			h.toLoop(rpc)
		case <-h.done:
			return
		}
	}
}

// dispatch adapts rpc and passes it on to the loop, or answers it here.
func (h *heartbeats) dispatch(rpc raft.RPC) {
	if args, ok := rpc.Command.(*raft.RequestVoteRequest); ok {
		rpc.Command = withIdentity(args)
	}
	h.mu.Lock()
	seam := h.seam
	h.mu.Unlock()
	if seam == nil {
		h.toLoop(rpc)
		return
	}
	switch args := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		rpc.Command = seam.adapt(args)
	case *raft.InstallSnapshotRequest:
		if seam.covers(args) {
			h.covered.Go(func() { seam.answerCovered(rpc, args, h.ask) })
			return
		}
	}
	h.toLoop(rpc)
}

// ask has the loop answer args. Errors: Raft's, raft.ErrTransportShutdown after close.
func (h *heartbeats) ask(args *raft.AppendEntriesRequest) (*raft.AppendEntriesResponse, error) {
	answer := make(chan raft.RPCResponse, 1)
	h.toLoop(raft.RPC{Command: args, RespChan: answer})
	select {
	case a := <-answer:
		if a.Error != nil {
			return nil, a.Error
		}
		return a.Response.(*raft.AppendEntriesResponse), nil
	case <-h.done:
		return nil, raft.ErrTransportShutdown
	}
}

// toLoop waits until the loop takes the message. After close the message is dropped, as
// Raft does after its shutdown.
func (h *heartbeats) toLoop(rpc raft.RPC) {
	select {
	case h.loop <- rpc:
	case <-h.done:
	}
}

// follow answers heartbeats by the state of f from now on, and passes incoming messages
// through s.
func (h *heartbeats) follow(f follower, s *seam) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.follower, h.seam = f, s
	}
}

// handle takes a heartbeat on a goroutine of the transport, which waits for the answer.
func (h *heartbeats) handle(rpc raft.RPC) {
	if !h.answer(rpc) {
		h.toLoop(rpc)
	}
}

// answer answers a heartbeat that changes nothing: one of this node's term, from the leader
// that it follows. It reports whether it did.
//
// The answer means that this node has not voted in a later term, which confirms reads. That
// is true when the term is read, after the heartbeat arrived, because Raft sets its term
// before it votes in it, even for itself. If Raft moves on after that, the answer is as
// good as one given just before.
func (h *heartbeats) answer(rpc raft.RPC) bool {
	args, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || !IsHeartbeat(args) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.follower == nil || h.follower.State() != raft.Follower {
		return false
	}
	if _, leader := h.follower.LeaderWithID(); leader == "" || string(leader) != string(args.ID) {
		return false
	}
	if h.follower.CurrentTerm() != args.Term {
		return false
	}
	rpc.Respond(&raft.AppendEntriesResponse{Term: args.Term, LastLog: h.follower.LastIndex(), Success: true}, nil)
	h.tellLocked(args)
	return true
}

// tellLocked passes an answered heartbeat to the loop, too. The loop's answer is ignored.
//
// A loop that hangs for longer than the heartbeat timeout finds both the timer and this
// heartbeat when it continues. If it takes the timer first, it forgets its leader and asks
// for pre-votes, which change no term, and then takes this heartbeat: it follows again
// before any answer can arrive.
func (h *heartbeats) tellLocked(args *raft.AppendEntriesRequest) {
	h.answeredAt = time.Now()
	if h.answeredAt.Sub(h.toldAt) < h.toldEvery {
		return
	}
	select {
	case h.told <- raft.RPC{Command: args, RespChan: make(chan raft.RPCResponse, 1)}:
		h.toldAt = h.answeredAt
	default:
	}
}

// lastAnswered returns when a heartbeat was last answered here, or zero.
func (h *heartbeats) lastAnswered() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answeredAt
}

// close lets nothing through any more and waits for what is under way, so that no heartbeat
// is answered on behalf of a Raft that was shut down while the next one over the same
// stores votes. A second call does nothing.
func (h *heartbeats) close() {
	h.mu.Lock()
	if !h.closed {
		close(h.done)
	}
	h.closed, h.follower, h.seam = true, nil, nil
	h.mu.Unlock()
	if h.passed != nil {
		<-h.passed
	}
	h.covered.Wait()
}
