package confirm

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// tellAfter is the delay after the last message until a peer is told that its entries are
// committed. Under load the next entries tell it sooner.
const tellAfter = 10 * time.Millisecond

// pipeline is a raft.AppendPipeline. Its goroutine forwards answers and ends with Close.
//
// Raft stops reading answers after one that refuses, but may send more messages before it
// closes the pipeline. Its own pipeline would then wait forever for a reader, and so would
// all replication to that peer, while heartbeats go on (docs/engine/612.md). Therefore the
// answers after a refusal are read and recorded here but not forwarded.
//
// Raft reports commits to a peer with the next entries or, when there are none, after its
// CommitTimeout, repeatedly: if that is short, an idle leader does little else. So it is
// long, and the message that reports a commit is sent from here, once there is one to
// report.
type pipeline struct {
	raft.AppendPipeline
	confirmer *Confirmer
	id        raft.ServerID
	answers   chan raft.AppendFuture
	stop      chan struct{}
	stopped   chan struct{}
	stopOnce  sync.Once

	// sending holds an element while a message is sent, by Raft or by tell. It acts as a
	// mutex; sending may take as long as the peer's machine or the network does.
	sending chan struct{}
	// next is the message that would follow the last one, without entries and new commits.
	next   raft.AppendEntriesRequest // guarded by sending
	tells  *time.Timer               // guarded by sending; calls tell
	closed bool                      // guarded by sending

	mu      sync.Mutex
	numbers map[*raft.AppendEntriesRequest]uint64 // guarded by mu; of unanswered messages
}

func newPipeline(c *Confirmer, id raft.ServerID, inner raft.AppendPipeline) *pipeline {
	p := &pipeline{
		AppendPipeline: inner,
		confirmer:      c,
		id:             id,
		numbers:        make(map[*raft.AppendEntriesRequest]uint64),
		answers:        make(chan raft.AppendFuture),
		stop:           make(chan struct{}),
		stopped:        make(chan struct{}),
		sending:        make(chan struct{}, 1),
	}
	p.tells = time.AfterFunc(tellAfter, p.tell) // it has nothing to tell yet
	go p.run()
	return p
}

func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.sending <- struct{}{}
	defer func() { <-p.sending }()
	p.confirmer.holdCommit(args)
	return p.sendLocked(args, resp)
}

func (p *pipeline) sendLocked(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.mu.Lock()
	// Take the number before sending, because the answer can arrive before the call below
	// returns.
	p.numbers[args] = p.confirmer.sent.Add(1)
	p.mu.Unlock()
	p.next = *args
	if n := len(args.Entries); n > 0 {
		last := args.Entries[n-1]
		p.next.Entries, p.next.PrevLogEntry, p.next.PrevLogTerm = nil, last.Index, last.Term
	}
	f, err := p.AppendPipeline.AppendEntries(args, resp)
	if err == nil && !p.toldLocked() {
		p.tells.Reset(tellAfter)
	} else {
		p.tells.Stop()
	}
	return f, err
}

// toldLocked reports whether the peer was told that everything sent to it is committed.
func (p *pipeline) toldLocked() bool { return p.next.LeaderCommitIndex >= p.next.PrevLogEntry }

// tell tells the peer what has been committed since the last message, as Raft would: with a
// message without entries. While some of what was sent is not committed it tries again
// later.
//
// Raft gets the answer like any other. It does not get an error, because its next message
// will fail, too.
func (p *pipeline) tell() {
	p.sending <- struct{}{}
	defer func() { <-p.sending }()
	if p.closed || p.toldLocked() {
		return
	}
	committed, leads := p.confirmer.committed(p.next.Term)
	if !leads {
		return
	}
	args := p.next
	args.LeaderCommitIndex = min(committed, args.PrevLogEntry)
	p.confirmer.holdCommit(&args)
	if args.LeaderCommitIndex <= p.next.LeaderCommitIndex {
		p.tells.Reset(tellAfter)
		return
	}
	_, _ = p.sendLocked(&args, new(raft.AppendEntriesResponse))
}

func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

func (p *pipeline) Close() error {
	p.stopOnce.Do(func() { close(p.stop) })
	err := p.AppendPipeline.Close() // releases a blocked sender
	p.sending <- struct{}{}
	p.closed = true
	p.tells.Stop()
	<-p.sending
	<-p.stopped
	return err
}

func (p *pipeline) run() {
	defer close(p.stopped)
	in := p.AppendPipeline.Consumer()
	out := p.answers // nil once Raft no longer reads it
	for {
		select {
		case <-p.stop:
			return
		case f := <-in:
			p.note(f)
			if out == nil {
				continue
			}
			select {
			case out <- f:
			case <-p.stop:
				return
			}
			if resp := f.Response(); !resp.Success || resp.Term > f.Request().Term {
				out = nil
			}
		}
	}
}

func (p *pipeline) note(f raft.AppendFuture) {
	args := f.Request()
	p.mu.Lock()
	number := p.numbers[args]
	delete(p.numbers, args)
	p.mu.Unlock()
	if f.Error() == nil {
		p.confirmer.note(p.id, number, args.Term, f.Response())
	}
}
