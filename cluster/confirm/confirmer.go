// Package confirm sits between Raft and its transport and corrects how Raft handles
// messages: a leader proves that it still leads by answers to messages sent after the
// question, heartbeats change Raft only in its main loop, a peer that comes back gets
// entries at once, and a snapshot that is already covered is not installed again.
// docs/engine.md explains each of these.
//
//	confirmer.go    the transport; reads that wait for a majority's answers
//	pipeline.go     entries to a peer, and early reports that they are committed
//	comeback.go     failed calls, held back until the peer is heard again
//	heartbeats.go   heartbeats answered outside the main loop, only by reading
//	votegate.go     no vote before a majority has confirmed that the data folder is no old copy
//	candidate.go    a vote is for a node, not for its address
//	seam.go         where the log meets the newest snapshot
//
// It stores nothing on disk and knows the node only through [Config], [NewScope] and
// [Confirmer.Follow]. Package cluster creates one [Confirmer] for each run of Raft, in this
// order: [New], [Confirmer.Start], Raft, [Confirmer.Follow]. Invariants:
//
//   - A read is confirmed when a majority of the voters has accepted a message of this term sent after the read arrived. Nonvoters and late
//     answers do not count.
//   - A heartbeat is answered here only if it changes nothing: it is of this node's term, from the leader that it follows.
//   - No message reports a commit index that is not on this node's own disk.
//   - After Close nothing reaches Raft, and nothing is answered on its behalf.
package confirm

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

// retryInterval is the time after which an unanswered round of heartbeats is followed by
// another one.
const retryInterval = 100 * time.Millisecond

// Config connects a confirmer to its node.
type Config struct {
	// HeartbeatTimeout is Raft's.
	HeartbeatTimeout time.Duration
	// Leads reports whether this node still leads in term and the peer is a member. If nil,
	// no failed call is held back.
	Leads func(term uint64, id raft.ServerID) bool
	// Done ends every wait of a held call.
	Done <-chan struct{}
	// Stored, if not nil, returns the lower of index and the last index on this node's disk.
	// Entries that are not on disk are not committed yet, even if Raft assumes so.
	Stored func(index uint64) uint64
}

// Confirmer wraps Raft's transport and tracks, for every peer, the latest message that it
// accepted. A read is confirmed when a majority of voters has accepted, in the current term,
// messages sent after the read arrived: then no later leader can have committed anything
// before it.
//
// Raft's VerifyLeader alone does not guarantee that, because it counts any answer that is
// read after the call, even to much older messages, and also answers of nonvoters. Here it
// only triggers heartbeats.
type Confirmer struct {
	raft.Transport
	cfg        Config
	comebacks  comebacks
	heartbeats *heartbeats

	// sent numbers the messages in the order of sending.
	sent atomic.Uint64

	mu       sync.Mutex
	answered map[raft.ServerID]answer // guarded by mu
	heard    map[raft.ServerID]Heard  // guarded by mu; for metrics and the cluster's status
	scope    *Scope                   // guarded by mu; nil while not leading
	raft     leader                   // guarded by mu; nil until Raft runs
}

// leader is the part of Raft's state that any goroutine may read.
type leader interface {
	CommitIndex() uint64
	CurrentTerm() uint64
}

// answer is the latest message of term that a peer accepted.
type answer struct{ term, number uint64 }

// Heard is the last answer of a peer, of any kind.
type Heard struct {
	At      time.Time
	LastLog uint64 // highest index in its log
	term    uint64 // of the answered message
}

// Scope holds the confirmations of one leadership.
type Scope struct {
	term uint64
	// voters returns the current voters, and whether this node still leads in term. It is
	// called with Confirmer.mu held and must not block.
	voters func() (others []raft.ServerID, self, leads bool)
	// trigger makes Raft send a heartbeat to every peer.
	trigger func()

	wake    chan struct{} // capacity 1: a read waits, or an answer came
	waiters []*waiter     // guarded by Confirmer.mu; ascending numbers
}

// waiter is a read that waits for answers to messages after number.
type waiter struct {
	number uint64
	done   chan struct{}
}

// New returns a transport for Raft to use instead of t. Start it before Raft runs.
func New(t raft.Transport, cfg Config) *Confirmer {
	return &Confirmer{
		Transport: t, cfg: cfg,
		comebacks:  comebacks{leads: cfg.Leads, done: cfg.Done},
		heartbeats: newHeartbeats(cfg.HeartbeatTimeout / 10),
		answered:   make(map[raft.ServerID]answer), heard: make(map[raft.ServerID]Heard),
	}
}

// Start begins to pass incoming messages on to Raft. Call it before Raft runs.
func (c *Confirmer) Start() { c.heartbeats.start(c.Transport.Consumer()) }

// Follow makes the confirmer answer heartbeats and report commits to peers according to r,
// which has these logs.
func (c *Confirmer) Follow(r *raft.Raft, logs raft.LogStore) {
	c.mu.Lock()
	c.raft = r
	c.mu.Unlock()
	c.heartbeats.follow(r, &seam{logs: logs, raft: r})
}

// Stop is Close, but leaves the transport open.
func (c *Confirmer) Stop() { c.heartbeats.close() }

// LastAnswered returns when a heartbeat was last answered outside Raft, or zero.
func (c *Confirmer) LastAnswered() time.Time { return c.heartbeats.lastAnswered() }

// AppendEntries numbers the message before it is sent and records the answer. A failed
// message is sent once more when the peer is back, because Raft would first wait for its
// CommitTimeout.
func (c *Confirmer) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := c.send(id, target, args, resp)
	if err == nil {
		if IsHeartbeat(args) {
			c.comebacks.heard(id)
		}
		return nil
	}
	if IsHeartbeat(args) || !c.comebacks.wait(id, args.Term) {
		return err
	}
	return c.send(id, target, args, resp)
}

func (c *Confirmer) send(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	number := c.sent.Add(1)
	c.holdCommit(args)
	// Raft reuses resp between calls.
	*resp = raft.AppendEntriesResponse{}
	err := c.Transport.AppendEntries(id, target, args, resp)
	if err == nil {
		c.note(id, number, args.Term, resp)
	}
	return err
}

// holdCommit limits the commit index in the message to what is on this node's disk. It does
// not write to heartbeats, which have none: Raft sends the same message repeatedly, even
// while a peer in this process still reads it.
func (c *Confirmer) holdCommit(args *raft.AppendEntriesRequest) {
	if c.cfg.Stored == nil {
		return
	}
	if stored := c.cfg.Stored(args.LeaderCommitIndex); stored < args.LeaderCommitIndex {
		args.LeaderCommitIndex = stored
	}
}

// committed returns the commit index of Raft's log, and false if this node no longer leads in
// term. A later leader may have committed more, which messages of term must not report. So
// the term is read last: Raft changes it before it learns of anything in the new term.
func (c *Confirmer) committed(term uint64) (index uint64, leads bool) {
	c.mu.Lock()
	r := c.raft
	c.mu.Unlock()
	if r == nil {
		return 0, true
	}
	index = r.CommitIndex()
	return index, r.CurrentTerm() == term
}

// AppendEntriesPipeline wraps the pipeline so that its messages are numbered, its answers are
// recorded, and the peer soon learns of commits.
func (c *Confirmer) AppendEntriesPipeline(id raft.ServerID, target raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := c.Transport.AppendEntriesPipeline(id, target)
	if err != nil {
		return nil, err
	}
	return newPipeline(c, id, inner), nil
}

// InstallSnapshot forwards the call and holds an error back until the peer is back.
func (c *Confirmer) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	err := c.Transport.InstallSnapshot(id, target, args, resp, data)
	if err != nil {
		c.comebacks.wait(id, args.Term)
	}
	return err
}

// RequestPreVote forwards the call. Without this method Raft would disable pre-vote.
func (c *Confirmer) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return c.Transport.(raft.WithPreVote).RequestPreVote(id, target, args, resp)
}

// Consumer returns the messages for Raft's main loop: everything except heartbeats that are
// answered here.
func (c *Confirmer) Consumer() <-chan raft.RPC { return c.heartbeats.loop }

// SetHeartbeatHandler installs our handler instead of Raft's.
func (c *Confirmer) SetHeartbeatHandler(func(raft.RPC)) {
	c.Transport.SetHeartbeatHandler(c.heartbeats.handle)
}

// Close closes the transport. Afterwards nothing is answered or reaches Raft.
func (c *Confirmer) Close() error {
	defer c.heartbeats.close()
	return CloseTransport(c.Transport)
}

// CloseTransport closes t if it can be closed.
func CloseTransport(t raft.Transport) error {
	if c, ok := t.(raft.WithClose); ok {
		return c.Close()
	}
	return nil
}

// note records an answer to the message number.
func (c *Confirmer) note(id raft.ServerID, number, term uint64, resp *raft.AppendEntriesResponse) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[id] = Heard{At: now, LastLog: resp.LastLog, term: term}
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

// LastHeard returns the last answer of a peer to the leader of term; ok is false if there was
// none.
func (c *Confirmer) LastHeard(id raft.ServerID, term uint64) (h Heard, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok = c.heard[id]
	return h, ok && h.term == term
}

// ByContact sorts peers: first those heard from within that time, the one with the most
// complete log first.
func (c *Confirmer) ByContact(ids []raft.ServerID, within time.Duration) []raft.ServerID {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	rank := func(id raft.ServerID) uint64 {
		h := c.heard[id]
		if now.Sub(h.At) > within {
			return 0
		}
		return 1 + h.LastLog
	}
	sorted := slices.Clone(ids)
	slices.SortStableFunc(sorted, func(a, b raft.ServerID) int { return cmp.Compare(rank(b), rank(a)) })
	return sorted
}

// NewScope returns the confirmations of a leadership in term. voters returns the current
// voters and whether this node still leads in term; it must not block. trigger makes Raft
// send a heartbeat to every peer.
func NewScope(term uint64, voters func() (others []raft.ServerID, self, leads bool), trigger func()) *Scope {
	return &Scope{term: term, voters: voters, trigger: trigger, wake: make(chan struct{}, 1)}
}

func (s *Scope) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Confirm waits until this node is known to have led in s's term after the call. Errors:
// ctx's cause.
func (c *Confirmer) Confirm(ctx context.Context, s *Scope) error {
	w := &waiter{done: make(chan struct{})}
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

// Serve serves s's waiting reads until ctx ends. All waiting reads share a round; those that
// arrive during one share the next.
func (c *Confirmer) Serve(ctx context.Context, s *Scope) {
	c.mu.Lock()
	c.scope = s
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.scope = nil
		c.mu.Unlock()
	}()
	retry := time.NewTimer(retryInterval)
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
		retry.Reset(retryInterval)
	}
}

// release ends the waits that are confirmed. It returns the number that a majority has
// reached, and whether reads still wait.
func (c *Confirmer) release(s *Scope) (reached uint64, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Under mu, so that this node is asked after each of the reads has arrived, because its
	// own answer is part of the majority.
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

// majorityLocked returns the highest number such that a majority of voters has accepted a
// message of term with at least that number. This node counts as having accepted everything
// sent so far, and one more.
func (c *Confirmer) majorityLocked(term uint64, others []raft.ServerID, self bool) uint64 {
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
	// Of n voters, n/2+1 are at or above the one at index (n-1)/2.
	return numbers[(len(numbers)-1)/2]
}
