package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// The bounds of an entry and of the queue before it. Together they keep a call to a
// follower, and its answer, below 16 MiB.
const (
	entryBytesMax    = 1 << 20 // of an entry with several commands
	entryCommandsMax = 1024
	entryTasksMax    = 10_000 // tasks that an entry may change
	commandBytesMax  = 9 << 20

	// Larger commands are not packed by shares. They open an entry, but at most every other
	// one.
	largeCommandBytes = entryBytesMax / 4
	largeCommandTasks = entryTasksMax / 4

	// queueBytesMax bounds the bytes of the queue; Config.QueueMax bounds its commands.
	queueBytesMax = 64 << 20

	// EnqueueTimeout bounds the wait for Raft's loop to take an entry. After it nothing was
	// written.
	EnqueueTimeout = 5 * time.Second
	// OutcomeTimeout bounds the wait for an entry, because Raft's futures can hang. After
	// it the outcome is unknown.
	OutcomeTimeout = 10 * time.Second
	// cancelPollInterval is the interval at which the batcher, while an entry is in flight,
	// looks for callers whose context has ended. If each caller selected on its own context,
	// that would cost 5 % of a busy leader's CPU.
	cancelPollInterval = 50 * time.Millisecond
)

// laneShare is the part of an entry, out of 64, that a lane may take before all lanes had
// their share, so that none starves. The rest is filled in lane order.
var laneShare = [command.LaneCount]int{8, 24, 8, 12, 12}

// laneOf returns a command's lane and the number of tasks that it may change, not counting
// the steps of one parent.
func laneOf(cmd command.Command) (command.Lane, int) {
	return command.LaneOf(cmd), command.AboutOf(cmd).Changes
}

// reaches reports whether a command may change more than laneOf counts: the steps of one
// parent. A complete may, too, but it is so frequent and usually changes so little that it
// is not counted.
func reaches(cmd command.Command) bool {
	_, completes := cmd.(command.Complete)
	return !completes && command.TouchesSteps(cmd)
}

// pending is one command on its way into an entry. The proposing goroutine owns it until it is
// queued and again after receiving from done; in between the batcher does.
type pending struct {
	lane  command.Lane
	tasks int
	buf   []byte // the encoded command; reused
	seq   uint64 // order of arrival
	state pendingState

	ctx    context.Context // of the caller
	needs  Gate            // the gate that accepts it
	toEnd  bool            // once it is in an entry, wait for the outcome even if ctx ends
	done   chan struct{}   // capacity 1; receives when result and err are set
	result nodes.Proposed
	err    error

	// waiter, if not nil, is the waiting claim whose command this is. deliverToWaiters gives it
	// the outcome; done, result and err are not used.
	waiter *waiter
}

// pendingState is guarded by batcher.mu.
type pendingState uint8

const (
	pendingQueued    pendingState = iota
	pendingTaken                  // in an entry; from here on the outcome may be unknown
	pendingAbandoned              // the caller left before it was taken
)

func (p *pending) large() bool {
	return len(p.buf) > largeCommandBytes || p.tasks > largeCommandTasks
}

// Future is the outcome of an entry, such as a raft.ApplyFuture.
type Future interface {
	Error() error
	Response() any
}

// Gate says which proposals the batcher accepts.
type Gate uint8

// The gates. A batcher starts with the first.
const (
	gateClosed   Gate = iota
	GateInternal      // the leader's own, after the barrier
	GateOpen
)

// Config connects a batcher to its node.
type Config struct {
	// Apply hands an entry to Raft. It may block up to EnqueueTimeout.
	Apply func(entry []byte) Future
	// Refuse returns the error for proposals while the gate is closed.
	Refuse func() error
	// Observe, if not nil, gets Raft's answer to each entry, nil = written.
	Observe func(error)
	// Packed, if not nil, gets the number of commands and bytes of each entry.
	Packed func(commands, bytes int)
	// Waiters, if not nil, returns the waiting claims of the current leadership, nil for none.
	// They learn the outcome of each entry before the next one is packed.
	Waiters func() *Waiters
	// Reach, if not nil, returns how many tasks a command that touches steps may change.
	Reach func(command.Command) int
	// QueueMax bounds the queued commands. Those of waiting claims have a separate
	// bound and do not count.
	QueueMax int
}

// Batcher packs commands into log entries: whatever has been queued while one entry was in
// flight becomes the next one. Only one entry is in flight. So an idle system has the
// latency of one write, and a busy one writes large entries, without any timer. Its methods
// are safe for concurrent use.
type Batcher struct {
	cfg    Config
	queued atomic.Int64 // commands left in the queue after the last entry

	pool sync.Pool     // of *pending
	wake chan struct{} // capacity 1; receives when something was queued
	idle *sync.Cond    // on mu; signalled when busy becomes false

	mu      sync.Mutex // guards everything below
	gate    Gate
	ended   bool // run has returned or is about to; the gate stays closed
	clock   func() fsm.Stamp
	lanes   [command.LaneCount]laneQueue
	count   int
	waiting int // how many of count are waiting claims
	bytes   int
	seq     uint64
	busy    bool // an entry is in flight or not delivered yet
	// lastLarge is true if a large command opened the previous entry.
	lastLarge bool
}

// New returns a batcher with a closed gate. It does nothing before Run.
func New(cfg Config) *Batcher {
	b := &Batcher{cfg: cfg, wake: make(chan struct{}, 1)}
	b.idle = sync.NewCond(&b.mu)
	b.pool.New = func() any { return &pending{done: make(chan struct{}, 1)} }
	return b
}

// Propose queues cmd and waits for the outcome. ctx only ends the wait: a command that is
// in an entry goes on, and its outcome is unknown to the caller.
func (b *Batcher) Propose(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	return b.await(ctx, cmd, GateOpen, false)
}

// ProposeOwn is Propose for the leader's own commands, also before it serves.
func (b *Batcher) ProposeOwn(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	return b.await(ctx, cmd, GateInternal, false)
}

// ProposeToEnd is Propose, but waits for the outcome of a command in an entry even after
// ctx has ended. Errors: those of Propose, but ctx's cause instead of nodes.ErrOverloaded
// if the command was in no entry.
func (b *Batcher) ProposeToEnd(ctx context.Context, cmd command.Command) (nodes.Proposed, error) {
	return b.await(ctx, cmd, GateOpen, true)
}

func (b *Batcher) await(ctx context.Context, cmd command.Command, needs Gate, toEnd bool) (nodes.Proposed, error) {
	p := b.pool.Get().(*pending)
	p.ctx, p.needs, p.toEnd = ctx, needs, toEnd
	p.lane, p.tasks = laneOf(cmd)
	if b.cfg.Reach != nil && reaches(cmd) {
		// At most the size of an entry, so that no command is refused for what it may
		// reach.
		p.tasks = max(p.tasks, min(b.cfg.Reach(cmd), entryTasksMax))
	}
	p.buf = command.AppendCommand(p.buf[:0], cmd)
	if err := b.enqueue(p); err != nil {
		b.put(p)
		return nodes.Proposed{}, err
	}
	b.poke()
	<-p.done
	result, err := p.result, p.err
	if p.state != pendingAbandoned { // else its lane still holds it
		b.put(p)
	}
	return result, err
}

func (b *Batcher) enqueue(p *pending) error {
	if len(p.buf) > commandBytesMax || p.tasks > entryTasksMax {
		return nodes.ErrTooLarge
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate < p.needs {
		return b.cfg.Refuse()
	}
	if err := b.fullLocked(p); err != nil {
		return err
	}
	b.queueLocked(p)
	return nil
}

// fullLocked returns a *nodes.Overload if the queue has no room for p. The leader's own
// commands are few and must not be refused because of load. Submits may not use the last
// quarter, because refusing a settle or an extend could cost a lease.
func (b *Batcher) fullLocked(p *pending) error {
	commands, bytes := b.cfg.QueueMax, queueBytesMax
	switch p.lane {
	case command.LaneInternal, command.LaneExpire:
		return nil
	case command.LaneSubmit:
		commands, bytes = max(commands*3/4, 1), bytes*3/4
	}
	if b.count-b.waiting < commands && b.bytes+len(p.buf) <= bytes {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundInFlight,
		Text:  fmt.Sprintf("%d commands of %s wait to be written (limits.in_flight)", b.count-b.waiting, bytesize.Text(int64(b.bytes))),
	}
}

func (b *Batcher) queueLocked(p *pending) {
	b.seq++
	p.seq = b.seq
	b.countLocked(p, 1)
	b.lanes[p.lane].push(p)
}

// countLocked counts p, by 1 if it comes and by -1 if it goes.
func (b *Batcher) countLocked(p *pending, by int) {
	b.count += by
	b.bytes += by * len(p.buf)
	if p.waiter != nil {
		b.waiting += by
	}
}

// poke signals that something was queued.
func (b *Batcher) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// put returns p to the pool. Large buffers are left to the garbage collector.
func (b *Batcher) put(p *pending) {
	p.ctx, p.result, p.err, p.state = nil, nodes.Proposed{}, nil, pendingQueued
	if cap(p.buf) > largeCommandBytes {
		p.buf = nil
	}
	b.pool.Put(p)
}

// enqueueWaiting queues the command of a waiter. The bounds of the queue do not apply,
// because waiters have their own.
func (b *Batcher) enqueueWaiting(p *pending) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gate != GateOpen {
		return b.cfg.Refuse()
	}
	p.state = pendingQueued
	b.queueLocked(p)
	b.poke()
	return nil
}

// withdraw takes a waiter's command back. It returns false if that is too late.
func (b *Batcher) withdraw(p *pending) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.state != pendingQueued {
		return false
	}
	b.abandonLocked(p)
	b.lanes[p.lane].compact()
	return true
}

// abandonLocked removes p from the counts of the queue and drops its buffer. p stays in its lane
// until its turn comes or the lane is compacted.
func (b *Batcher) abandonLocked(p *pending) {
	p.state = pendingAbandoned
	b.countLocked(p, -1)
	p.buf = nil
	b.lanes[p.lane].abandoned++
}

// Run is the batcher's goroutine. It returns when stop is closed and nothing is in flight.
// Commands that are queued then, or come later, are refused.
func (b *Batcher) Run(stop <-chan struct{}) {
	defer b.end()
	poll := time.NewTimer(cancelPollInterval)
	defer poll.Stop()
	var previous *entry // applied, but its callers do not have their results yet
	for {
		e := b.take(previous != nil)
		if e == nil {
			previous.deliver()
			if previous != nil {
				previous = nil
				continue // take must run again to end busy
			}
			select {
			case <-b.wake:
				continue
			case <-stop:
				return
			}
		}
		// Wake the callers of the previous entry while this one is written.
		outcome := b.start(e)
		previous.deliver()
		b.awaitOutcome(e, outcome, poll)
		b.deliverToWaiters(e)
		previous = e
	}
}

// entry is a log entry being made.
type entry struct {
	items   []*pending // in the order of their commands
	stamp   fsm.Stamp
	applied *fsm.Applied
	err     error
}

// take makes an entry of queued commands, or returns nil if there are none. Then the batcher is no
// longer busy, unless the caller has yet to deliver an entry.
func (b *Batcher) take(delivering bool) *entry {
	b.mu.Lock()
	items := b.packLocked()
	if len(items) == 0 {
		if !delivering && b.busy {
			b.busy = false
			b.idle.Broadcast()
		}
		b.mu.Unlock()
		return nil
	}
	b.busy = true
	clock := b.clock
	b.queued.Store(int64(b.count))
	b.mu.Unlock()
	return &entry{items: items, stamp: clock()}
}

// outcome is what Raft made of an entry.
type outcome struct {
	applied *fsm.Applied
	err     error
}

// start encodes e and hands it to Raft. The channel receives the outcome.
func (b *Batcher) start(e *entry) <-chan outcome {
	size := 32
	for _, p := range e.items {
		size += len(p.buf)
	}
	// A new slice each time, because Raft and its log cache keep it.
	data := command.AppendEntryHeader(make([]byte, 0, size), e.stamp, len(e.items))
	for _, p := range e.items {
		data = append(data, p.buf...)
	}
	if b.cfg.Packed != nil {
		b.cfg.Packed(len(e.items), len(data))
	}
	// In its own goroutine, because a future of Raft can hang forever.
	done := make(chan outcome, 1)
	count := len(e.items) // e may be modified once the deadline has passed
	go func() {
		f := b.cfg.Apply(data)
		err := f.Error()
		if b.cfg.Observe != nil {
			b.cfg.Observe(err)
		}
		if err != nil {
			done <- outcome{err: ProposeError(err)}
			return
		}
		applied, ok := f.Response().(*fsm.Applied)
		if !ok || len(applied.Results) != count {
			done <- outcome{err: fmt.Errorf("%w: the entry has no result", nodes.ErrOutcomeUnknown)}
			return
		}
		done <- outcome{applied: applied}
	}()
	return done
}

// ProposeError translates Raft's error about an entry. Raft returns the first three before
// it assigns an index, so nothing was written; after any other error the entry may be in a
// node's log and may still be committed.
func ProposeError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return fmt.Errorf("%w: %w", nodes.ErrNotLeader, err)
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return &nodes.Overload{Bound: nodes.BoundInFlight, Text: err.Error()}
	}
	return fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, err)
}

// awaitOutcome waits for the outcome of e. Whenever poll fires, it answers the callers whose
// context has ended.
func (b *Batcher) awaitOutcome(e *entry, done <-chan outcome, poll *time.Timer) {
	begun := time.Now()
	for {
		poll.Reset(cancelPollInterval)
		select {
		case o := <-done:
			e.applied, e.err = o.applied, o.err
			return
		case <-poll.C:
		}
		if time.Since(begun) >= OutcomeTimeout {
			e.err = fmt.Errorf("%w: no answer from Raft in %s", nodes.ErrOutcomeUnknown, OutcomeTimeout)
			return
		}
		b.answerCancelled(e)
	}
}

// answerCancelled answers the callers whose context has ended: that the outcome is unknown if their
// command is in e, which is in flight, and otherwise that nothing was written.
func (b *Batcher) answerCancelled(e *entry) {
	for i, p := range e.items {
		if p != nil && p.waiter == nil && !p.toEnd && p.ctx.Err() != nil {
			e.items[i] = nil // so that it is not delivered
			p.end(fmt.Errorf("%w: %w", nodes.ErrOutcomeUnknown, context.Cause(p.ctx)))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.lanes {
		for _, p := range b.lanes[l].left() {
			if p.state != pendingQueued || p.waiter != nil || p.ctx.Err() == nil {
				continue
			}
			b.abandonLocked(p)
			err := context.Cause(p.ctx)
			if !p.toEnd {
				err = fmt.Errorf("%w: %w", &nodes.Overload{Bound: nodes.BoundInFlight, Text: "the command waited too long to be written"}, err)
			}
			p.end(err)
		}
		b.lanes[l].compact()
	}
}

// end answers p's caller with err.
func (p *pending) end(err error) {
	p.err = err
	p.done <- struct{}{}
}

// deliverToWaiters gives the waiting claims in e their results and removes them from it. They
// belong to the leadership that proposed e, which may have ended meanwhile. Without any, the
// current waiters still learn that e was applied.
func (b *Batcher) deliverToWaiters(e *entry) {
	for _, p := range e.items {
		if p != nil && p.waiter != nil {
			p.waiter.set.deliver(e)
			return
		}
	}
	if b.cfg.Waiters == nil {
		return
	}
	if s := b.cfg.Waiters(); s != nil {
		s.deliver(e)
	}
}

// deliver gives every caller its own result.
func (e *entry) deliver() {
	if e == nil {
		return
	}
	for i, p := range e.items {
		if p == nil {
			continue // a waiter's, or its caller has left
		}
		if e.err != nil {
			p.err = e.err
		} else {
			p.result = e.result(i)
		}
		p.done <- struct{}{}
	}
	e.items = nil
}

// result returns the outcome of the i-th command of an applied entry.
func (e *entry) result(i int) nodes.Proposed {
	return nodes.Proposed{Index: e.applied.Index, Stamp: e.applied.Stamp, Result: e.applied.Results[i], Release: e.applied.Release}
}

// Open accepts the proposals that the gate admits, unless Run has ended. clock stamps their
// entries.
func (b *Batcher) Open(g Gate, clock func() fsm.Stamp) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.gate, b.clock = g, clock
	}
}

// Close refuses proposals, answers queued ones with err (nothing of them was written), and
// waits until the entry in flight is answered.
func (b *Batcher) Close(err error) {
	var waiting []*waiter
	b.mu.Lock()
	b.gate = gateClosed
	for l := range b.lanes {
		for p := b.lanes[l].pop(); p != nil; p = b.lanes[l].pop() {
			if p.waiter != nil {
				p.state = pendingTaken
				waiting = append(waiting, p.waiter)
				continue
			}
			p.end(err)
		}
	}
	b.count, b.waiting, b.bytes = 0, 0, 0
	b.mu.Unlock()
	for _, w := range waiting { // without b.mu, because the waiters' lock comes first
		w.set.drop(w, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy {
		b.idle.Wait()
	}
}

// end closes the batcher for good, because Run no longer answers what is queued.
func (b *Batcher) end() {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	b.Close(b.cfg.Refuse())
}

// Busy reports whether an entry is in flight or not delivered yet.
func (b *Batcher) Busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.busy
}

// LastQueued returns how many commands were left in the queue after the last entry.
func (b *Batcher) LastQueued() int64 { return b.queued.Load() }
