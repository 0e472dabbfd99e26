package cluster

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// confirmRetryInterval is how long a round of heartbeats may stay unanswered
// before another is asked for.
const confirmRetryInterval = 100 * time.Millisecond

// confirmer wraps Raft's transport and knows, for every peer, the latest
// message that it answered with success. A read is confirmed when a majority
// of voters has done so, in our term, for messages sent after the read
// arrived: then no later leader can have committed anything before it.
//
// Raft's VerifyLeader alone does not show that: it counts any answer that is
// read after the call, however long ago its message was sent, and nonvoters'
// answers too. Here it only makes Raft send heartbeats.
type confirmer struct {
	raft.Transport
	comebacks  comebacks
	heartbeats *heartbeats
	// stored, if not nil, returns an index, or the last one that this node's disk has
	// if that is less: what it has not is not committed yet, whatever Raft takes it for.
	stored func(index uint64) uint64

	// sent numbers the messages, in the order of being sent.
	sent atomic.Uint64

	mu       sync.Mutex
	answered map[raft.ServerID]answer // guarded by mu
	heard    map[raft.ServerID]heard  // guarded by mu; for metrics
	scope    *confirmScope            // guarded by mu; nil while not leading
}

// answer is the latest message of term that a peer accepted.
type answer struct{ term, number uint64 }

// heard is what a peer said last, whatever it was.
type heard struct {
	at      time.Time
	lastLog uint64 // the highest index in its log
}

// confirmScope is one leadership's confirmations.
type confirmScope struct {
	term uint64
	// voters returns the voters now, and whether this node still leads in term.
	// It is called with confirmer.mu held and must not wait.
	voters func() (others []raft.ServerID, self, leads bool)
	// trigger makes Raft send a heartbeat to every peer.
	trigger func()

	wake    chan struct{}    // capacity 1: somebody waits, or an answer came
	waiters []*confirmWaiter // guarded by confirmer.mu; numbers ascend
}

// confirmWaiter is a read that waits for answers to messages after number.
type confirmWaiter struct {
	number uint64
	done   chan struct{}
}

func newConfirmer(t raft.Transport) *confirmer {
	return &confirmer{
		Transport: t, heartbeats: newHeartbeats(),
		answered: make(map[raft.ServerID]answer), heard: make(map[raft.ServerID]heard),
	}
}

// AppendEntries numbers the message before it is sent and notes the answer.
func (c *confirmer) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	number := c.sent.Add(1)
	c.holdCommit(args)
	// Raft reuses resp from call to call.
	*resp = raft.AppendEntriesResponse{}
	err := c.Transport.AppendEntries(id, target, args, resp)
	if err == nil {
		c.note(id, number, args.Term, resp)
	}
	switch {
	case err == nil && isHeartbeat(args):
		c.comebacks.heard(id)
	case err != nil && !isHeartbeat(args):
		c.comebacks.wait(id, args.Term)
	}
	return err
}

// holdCommit lowers the commit index that the message tells to what is on this node's
// disk, too.
func (c *confirmer) holdCommit(args *raft.AppendEntriesRequest) {
	if c.stored != nil {
		args.LeaderCommitIndex = c.stored(args.LeaderCommitIndex)
	}
}

// InstallSnapshot passes on, and holds an error back as AppendEntries does.
func (c *confirmer) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := c.Transport.InstallSnapshot(id, target, args, resp, data)
	if err != nil {
		c.comebacks.wait(id, args.Term)
	}
	return err
}

// RequestPreVote passes on: without this method Raft would switch pre-vote off.
func (c *confirmer) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return c.Transport.(raft.WithPreVote).RequestPreVote(id, target, args, resp)
}

// Consumer returns what Raft's main loop takes: what comes in, and heartbeats that are
// not answered beside it.
func (c *confirmer) Consumer() <-chan raft.RPC { return c.heartbeats.loop }

// SetHeartbeatHandler sets ours in the place of Raft's.
func (c *confirmer) SetHeartbeatHandler(func(raft.RPC)) {
	c.Transport.SetHeartbeatHandler(c.heartbeats.handle)
}

// Close closes the transport. Nothing is answered or reaches Raft after it.
func (c *confirmer) Close() error {
	defer c.heartbeats.close()
	if t, ok := c.Transport.(raft.WithClose); ok {
		return t.Close()
	}
	return nil
}

// note records an answer to the message number.
func (c *confirmer) note(id raft.ServerID, number, term uint64, resp *raft.AppendEntriesResponse) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[id] = heard{at: now, lastLog: resp.LastLog}
	if !resp.Success || resp.Term != term {
		return
	}
	last := c.answered[id]
	if term < last.term || term == last.term && number <= last.number {
		return
	}
	c.answered[id] = answer{term: term, number: number}
	if c.scope != nil && len(c.scope.waiters) > 0 {
		c.scope.poke()
	}
}

// lastHeard returns what was last heard of a peer, ok false if nothing was.
func (c *confirmer) lastHeard(id raft.ServerID) (h heard, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok = c.heard[id]
	return h, ok
}

// byContact sorts peers: those heard from within contactMax first, of these the
// one with the most of the log first.
func (c *confirmer) byContact(ids []raft.ServerID) []raft.ServerID {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	rank := func(id raft.ServerID) uint64 {
		h := c.heard[id]
		if now.Sub(h.at) > contactMax {
			return 0
		}
		return 1 + h.lastLog
	}
	sorted := slices.Clone(ids)
	slices.SortStableFunc(sorted, func(a, b raft.ServerID) int { return cmp.Compare(rank(b), rank(a)) })
	return sorted
}

func (s *confirmScope) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// confirm waits until this node is known to have led in s's term after the
// call. Errors: ctx's cause.
func (c *confirmer) confirm(ctx context.Context, s *confirmScope) error {
	w := &confirmWaiter{done: make(chan struct{})}
	c.mu.Lock()
	w.number = c.sent.Load() // under mu, so that waiters are in order
	s.waiters = append(s.waiters, w)
	c.mu.Unlock()
	s.poke()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		if i := slices.Index(s.waiters, w); i >= 0 {
			s.waiters = slices.Delete(s.waiters, i, i+1)
		}
		c.mu.Unlock()
		return context.Cause(ctx)
	}
}

// runConfirm serves s's waiting reads until ctx ends. All reads that wait
// share a round; those that arrive during one share the next.
func (c *confirmer) runConfirm(ctx context.Context, s *confirmScope) {
	c.mu.Lock()
	c.scope = s
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.scope = nil
		c.mu.Unlock()
	}()
	retry := time.NewTimer(confirmRetryInterval)
	defer retry.Stop()
	asked := uint64(0) // messages up to this one were sent before the round
	round := false     // a round is under way
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry.C:
			round = false
		case <-s.wake:
		}
		reached, waiting := c.release(s)
		if !waiting {
			round = false
			continue
		}
		if round && reached <= asked {
			continue
		}
		asked, round = c.sent.Load(), true
		s.trigger()
		retry.Reset(confirmRetryInterval)
	}
}

// release ends the waits that are confirmed. It returns the number that a
// majority has reached, and whether reads still wait.
func (c *confirmer) release(s *confirmScope) (reached uint64, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Under mu, so that this node is asked after each of the reads has arrived:
	// its own yes is part of their majority.
	others, self, leads := s.voters()
	if !leads {
		return 0, len(s.waiters) > 0
	}
	reached = c.majorityLocked(s.term, others, self)
	done := 0
	for _, w := range s.waiters {
		if w.number >= reached {
			break
		}
		close(w.done)
		done++
	}
	s.waiters = append(s.waiters[:0], s.waiters[done:]...)
	return reached, len(s.waiters) > 0
}

// majorityLocked returns the highest number such that a majority of voters
// has accepted a message of term with at least that number. This node accepts
// whatever was sent so far, and one more.
func (c *confirmer) majorityLocked(term uint64, others []raft.ServerID, self bool) uint64 {
	numbers := make([]uint64, 0, len(others)+1)
	for _, id := range others {
		n := uint64(0)
		if a := c.answered[id]; a.term == term {
			n = a.number
		}
		numbers = append(numbers, n)
	}
	if self {
		numbers = append(numbers, c.sent.Load()+1)
	}
	if len(numbers) == 0 {
		return 0
	}
	slices.Sort(numbers)
	// With n voters, n/2+1 of them are at or above the one at (n-1)/2.
	return numbers[(len(numbers)-1)/2]
}

// AppendEntriesPipeline wraps the pipeline so that its messages are numbered
// and its answers noted.
func (c *confirmer) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := c.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	p := &confirmPipeline{
		AppendPipeline: inner,
		confirmer:      c,
		id:             id,
		numbers:        make(map[*raft.AppendEntriesRequest]uint64),
		answers:        make(chan raft.AppendFuture),
		stop:           make(chan struct{}),
		stopped:        make(chan struct{}),
	}
	go p.run()
	return p, nil
}

// confirmPipeline is a raft.AppendPipeline. Its goroutine passes answers on
// and ends with Close.
//
// Raft reads no more answers after one that refuses, but may send some more
// messages before it closes the pipeline. Raft's own would then wait for ever for
// somebody to take an answer, and so would all replication to that peer while its
// heartbeats went on (docs/engine/612.md). Therefore the answers after a refusal are
// taken here, noted, and passed to nobody.
type confirmPipeline struct {
	raft.AppendPipeline
	confirmer *confirmer
	id        raft.ServerID
	answers   chan raft.AppendFuture
	stop      chan struct{}
	stopped   chan struct{}
	stopOnce  sync.Once

	mu      sync.Mutex
	numbers map[*raft.AppendEntriesRequest]uint64 // guarded by mu; unanswered
}

func (p *confirmPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.confirmer.holdCommit(args)
	p.mu.Lock()
	// The number is taken before the message is sent: its answer can come
	// before the call below returns.
	p.numbers[args] = p.confirmer.sent.Add(1)
	p.mu.Unlock()
	return p.AppendPipeline.AppendEntries(args, resp)
}

func (p *confirmPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

func (p *confirmPipeline) Close() error {
	p.stopOnce.Do(func() { close(p.stop) })
	err := p.AppendPipeline.Close()
	<-p.stopped
	return err
}

func (p *confirmPipeline) run() {
	defer close(p.stopped)
	in := p.AppendPipeline.Consumer()
	out := p.answers // nil once nobody reads it any more
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

func (p *confirmPipeline) note(f raft.AppendFuture) {
	args := f.Request()
	p.mu.Lock()
	number := p.numbers[args]
	delete(p.numbers, args)
	p.mu.Unlock()
	if f.Error() == nil {
		p.confirmer.note(p.id, number, args.Term, f.Response())
	}
}
