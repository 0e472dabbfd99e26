package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

// soakLoad runs the workers of a soak and records the answers they get. It checks each
// answer against the contract as it comes.
type soakLoad struct {
	c      *soakCluster
	health *soakHealth
	wg     sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	keys      map[string]uint64
	tokens    map[uint64]uint64 // token to task, of acknowledged claims
	holds     map[uint64]*soakHold
	completed map[uint64]soakCompletion
	index     uint64 // highest in an acknowledgement
	submits   int
	claims    int
	unknown   int
	reads     int
}

// soakHold describes the newest acknowledged claim of a task.
type soakHold struct {
	token  uint64
	lease  time.Duration
	asked  time.Time // the lease cannot end before asked + lease
	dueAt  time.Time // the lease must end some time after this, unless it was extended
	begun  soakMoment
	ending bool // the worker has tried to end it, or an answer was lost
	trying bool // an extend is under way: it may have been applied without its worker's knowledge
}

// tried records the end of a try to extend. If it was applied, or may still be, the lease
// continues from some moment until now.
func (h *soakHold) tried(now time.Time, refused bool) {
	h.trying = false
	if !refused {
		h.dueAt = now.Add(h.lease)
	}
}

// soakCompletion is an acknowledged complete.
type soakCompletion struct {
	token  uint64
	result string
}

func newSoakLoad(c *soakCluster, h *soakHealth) *soakLoad {
	return &soakLoad{
		c: c, health: h,
		keys:      make(map[string]uint64),
		tokens:    make(map[uint64]uint64),
		holds:     make(map[uint64]*soakHold),
		completed: make(map[uint64]soakCompletion),
	}
}

// start starts the workers; they end with ctx.
func (l *soakLoad) start(ctx context.Context, seed uint64) {
	for i := range l.c.plan.workers {
		w := &soakWorker{load: l, name: fmt.Sprint("w", i), random: rand.New(rand.NewPCG(seed, uint64(100+i)))}
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			w.run(ctx)
		}()
	}
}

// leaseMin is the shortest lease that a client may ask for.
const leaseMin = 100 * time.Millisecond

// soakWorker is one client: it repeats calls without an answer.
type soakWorker struct {
	load      *soakLoad
	name      string
	random    *rand.Rand
	seq       int
	extending *soakHold // that it is extending now, or nil
}

func (w *soakWorker) run(ctx context.Context) {
	for ctx.Err() == nil {
		switch w.random.IntN(5) {
		case 0, 1:
			w.submit(ctx)
		case 2, 3:
			w.work(ctx)
		default:
			w.read(ctx)
		}
		pause.For(ctx, time.Duration(w.random.Int64N(int64(w.load.c.plan.pace))))
	}
}

// node returns the node for the next call: mostly the leader.
func (w *soakWorker) node() *Node {
	if w.random.IntN(8) > 0 {
		if m := w.load.c.leader(); m != nil {
			return m.running()
		}
	}
	return w.load.c.members[w.random.IntN(len(w.load.c.members))].running()
}

// propose repeats the command until there is an answer, or the end. unknown means that an
// earlier try may have been applied.
func (w *soakWorker) propose(ctx context.Context, cmd command.Command) (p nodes.Proposed, unknown, ok bool) {
	for ctx.Err() == nil {
		if silent := time.Until(time.Unix(0, w.load.c.silentUntil.Load())); silent > 0 {
			pause.For(ctx, silent)
			continue
		}
		n := w.node()
		if n == nil {
			pause.For(ctx, 50*time.Millisecond)
			continue
		}
		p, err := w.try(ctx, n, cmd)
		switch {
		case err == nil:
			w.load.acknowledged(p.Index)
			return p, unknown, true
		case errors.Is(err, nodes.ErrOutcomeUnknown):
			unknown = true
			w.load.noteUnknown()
		case errors.Is(err, nodes.ErrNotLeader), errors.Is(err, nodes.ErrNoLeader), errors.Is(err, nodes.ErrOverloaded),
			errors.Is(err, nodes.ErrShuttingDown):
		default:
			w.load.c.fail("%s: propose %T: %v", w.name, cmd, err)
		}
		pause.For(ctx, time.Duration(10+w.random.IntN(100))*time.Millisecond)
	}
	return p, unknown, false
}

// try makes one try.
func (w *soakWorker) try(ctx context.Context, n *Node, cmd command.Command) (nodes.Proposed, error) {
	l := w.load
	if w.extending != nil {
		l.mu.Lock()
		w.extending.trying = true
		l.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(100+w.random.IntN(5000))*time.Millisecond)
	defer cancel()
	p, err := n.Propose(ctx, cmd)
	if l.c.hasCrashed(n) {
		err = nodes.ErrOutcomeUnknown
	}
	if w.extending != nil {
		l.mu.Lock()
		w.extending.tried(time.Now(), err != nil && !errors.Is(err, nodes.ErrOutcomeUnknown))
		l.mu.Unlock()
	}
	return p, err
}

func (l *soakLoad) acknowledged(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index = max(l.index, index)
}

func (l *soakLoad) noteUnknown() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unknown++
}

// submit adds a task with a key. A submit whose answer was lost is repeated, and a later
// submit with the key gets the same task.
func (w *soakWorker) submit(ctx context.Context) {
	w.seq++
	key := w.name + "-" + strconv.Itoa(w.seq-w.random.IntN(3))
	params := make([]byte, 2+w.random.IntN(200))
	for i := range params {
		params[i] = '1'
	}
	p, _, ok := w.propose(ctx, command.Submit{Tasks: []fsm.NewTask{{
		Type: fmt.Sprint("t", w.random.IntN(3)), Params: params, Priority: int32(w.random.IntN(3)), MaxAttempts: 0, Key: key,
	}}})
	if !ok {
		return
	}
	id := p.Result.Submitted[0].Task.ID
	l := w.load
	l.mu.Lock()
	defer l.mu.Unlock()
	l.submits++
	if have, known := l.keys[key]; known && have != id {
		l.c.fail("key %s named task %d, now %d", key, have, id)
	}
	l.keys[key] = id
}

// work claims a task, keeps it for a while, and settles it, or leaves it to its lease.
func (w *soakWorker) work(ctx context.Context) {
	w.seq++
	lease := (leaseMin + time.Duration(w.random.Int64N(int64(w.load.c.plan.leaseMax)))).Truncate(time.Millisecond)
	asked := time.Now()
	begun := w.load.health.now()
	p, _, ok := w.propose(ctx, command.ClaimNext{
		WorkerID: w.name, Limit: 1, LeaseMS: lease.Milliseconds(), RequestID: w.name + "-" + strconv.Itoa(w.seq),
	})
	if !ok || len(p.Result.Claims) == 0 {
		return
	}
	claim := p.Result.Claims[0]
	h := w.load.noteClaim(w.name, p, lease, asked, begun)
	if h == nil {
		return
	}
	hold := command.Hold{ID: claim.Task.ID, WorkerID: w.name, Token: claim.Token}
	for w.random.IntN(3) == 0 {
		pause.For(ctx, time.Duration(w.random.Int64N(int64(lease))))
		if !w.extend(ctx, hold, h) {
			return
		}
	}
	if w.random.IntN(2) == 0 {
		pause.For(ctx, time.Duration(w.random.Int64N(int64(lease))))
	}
	w.settle(ctx, hold, h)
}

// noteClaim checks and records an acknowledged claim; nil if it is over.
func (l *soakLoad) noteClaim(worker string, p nodes.Proposed, lease time.Duration, asked time.Time, begun soakMoment) *soakHold {
	now := time.Now()
	c := p.Result.Claims[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims++
	if task, used := l.tokens[c.Token]; used {
		l.c.fail("%s: token %d of task %d was task %d's", worker, c.Token, c.Task.ID, task)
	}
	l.tokens[c.Token] = c.Task.ID
	if !c.Live {
		if now.Before(asked.Add(lease)) {
			l.c.fail("%s: the claim of task %d, token %d, is over %s after it was asked for, its lease is %s", worker, c.Task.ID, c.Token, now.Sub(asked), lease)
		}
		return nil
	}
	if h := l.holds[c.Task.ID]; h != nil {
		if h.token > c.Token {
			return nil // this answer came late: the claim is over, or was live when it was sent
		}
		if !h.ending && now.Before(h.asked.Add(h.lease)) {
			l.c.fail("%s: got task %d with token %d, %s after the holder of token %d asked for %s", worker, c.Task.ID, c.Token, now.Sub(h.asked), h.token, h.lease)
		}
	}
	h := &soakHold{token: c.Token, lease: lease, asked: asked, dueAt: now.Add(lease), begun: begun}
	l.holds[c.Task.ID] = h
	return h
}

// extend extends the claim, and reports whether it still holds.
func (w *soakWorker) extend(ctx context.Context, hold command.Hold, h *soakHold) bool {
	asked := time.Now()
	w.extending = h
	p, unknown, ok := w.propose(ctx, command.Extend{Hold: hold})
	w.extending = nil
	l := w.load
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ok {
		h.ending = true
		return false
	}
	now := time.Now()
	if p.Result.Code != "" {
		l.checkEnded(w.name, hold, h, p.Result.Code, now)
		return false
	}
	// The earliest of the tries may be the one that was applied last.
	h.asked = asked
	if unknown {
		h.ending = true // one of the tries may still be under way
	}
	return true
}

// checkEnded checks a refusal that says that the claim is over. The lock must be held.
func (l *soakLoad) checkEnded(worker string, hold command.Hold, h *soakHold, code fsm.Code, now time.Time) {
	switch code {
	case fsm.CodeStaleClaim, fsm.CodeWrongWorker, fsm.CodeTaskCompleted: // another worker has it, or had it
	default:
		l.c.fail("%s: task %d, token %d: %s", worker, hold.ID, hold.Token, code)
	}
	if now.Before(h.asked.Add(h.lease)) {
		l.c.fail("%s: task %d, token %d: %s only %s after a lease of %s was asked for", worker, hold.ID, hold.Token, code, now.Sub(h.asked), h.lease)
	}
	h.ending = true
}

// settle completes, fails, releases or forgets the claim.
func (w *soakWorker) settle(ctx context.Context, hold command.Hold, h *soakHold) {
	result := strconv.Quote(fmt.Sprint(w.name, " ", hold.Token))
	var cmd command.Command
	switch w.random.IntN(8) {
	case 0:
		return
	case 1:
		cmd = command.Fail{Hold: hold, Error: "no luck"}
	case 2:
		cmd = command.Release{Hold: hold}
	default:
		cmd = command.Complete{Hold: hold, Result: []byte(result)}
	}
	l := w.load
	l.mu.Lock()
	wasEnding := h.ending
	h.ending = true
	l.mu.Unlock()
	p, unknown, ok := w.propose(ctx, cmd)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Result.Code != "" {
		if !unknown && !wasEnding {
			l.checkEnded(w.name, hold, h, p.Result.Code, time.Now())
		}
		return
	}
	if p.Result.Repeated && !unknown {
		l.c.fail("%s: task %d, token %d: repeated, but it was asked once", w.name, hold.ID, hold.Token)
	}
	if _, is := cmd.(command.Complete); is {
		if have, done := l.completed[hold.ID]; done {
			l.c.fail("%s: task %d was completed with token %d and again with %d", w.name, hold.ID, have.token, hold.Token)
		}
		l.completed[hold.ID] = soakCompletion{token: hold.Token, result: result}
	}
}

// read reads linearizably: everything acknowledged before is there.
func (w *soakWorker) read(ctx context.Context) {
	n := w.node()
	if n == nil {
		return
	}
	l := w.load
	l.mu.Lock()
	want := l.index
	var id uint64
	var done soakCompletion
	for id, done = range l.completed {
		break
	}
	l.mu.Unlock()
	try, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var task *fsm.Task
	index, err := n.ReadLinearizable(try, 0, func(m *fsm.Machine, _ fsm.Stamp) {
		if have := m.Get(id); have != nil {
			copied := *have
			task = &copied
		}
	})
	if err != nil || l.c.hasCrashed(n) {
		return
	}
	l.mu.Lock()
	l.reads++
	l.mu.Unlock()
	if index < want {
		l.c.fail("%s: a read at %d, but %d had been acknowledged", w.name, index, want)
	}
	if id != 0 && (task == nil || task.Status != fsm.StatusCompleted || string(task.Result) != done.result) {
		l.c.fail("%s: a read at %d has task %d as %+v, it was completed: %+v", w.name, index, id, task, done)
	}
}
