package api

import (
	"container/list"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

const (
	// workersMax bounds the workers of an answer to the first ones by id.
	workersMax = 10_000
	// workersPage is the number read under one lock.
	workersPage = 1_000
	// workerBytes bounds the memory for a worker while it is found and in an answer: its name and the ids of 100
	// tasks.
	workerBytes = 3 << 10
)

// listWorkers answers GET /api/workers.
func listWorkers(r *request) {
	holders, now, ok := holders(r)
	if !ok {
		return
	}
	r.send(fasthttp.StatusOK, appendWorkers(r.buffer(), atWork(r, holders, now)))
}

// holders returns the workers that hold claims, at most workersMax. Later pages are as of a later index. ok is false
// if the request was already answered.
func holders(r *request) (holders []fsm.WorkerView, now fsm.Stamp, ok bool) {
	var page []fsm.WorkerView
	after, index := "", uint64(0)
	look := func(m *fsm.Machine, stamp fsm.Stamp) {
		page = m.Workers(after, min(workersPage, workersMax-len(holders)))
		now, index = stamp, m.Index()
	}
	for ok = r.read(look); ok && len(page) > 0 && len(holders) < workersMax; ok = r.reserveAnswer(len(holders)*workerBytes) && r.readOn(index, look) {
		holders = append(holders, page...)
		after = holders[len(holders)-1].WorkerID
	}
	return holders, now, ok
}

// atWork returns the workers that hold claims or made a call lately, sorted by id, at most workersMax. SeenT is the
// later of the times that the state and this node know.
func atWork(r *request, holders []fsm.WorkerView, now fsm.Stamp) []fsm.WorkerView {
	heard := r.core.presence.heard(r.timing.node)
	for i := range holders {
		w := &holders[i]
		if agoMS, ok := heard[w.WorkerID]; ok {
			w.SeenT = max(w.SeenT, now.T-agoMS)
			delete(heard, w.WorkerID)
		}
	}
	for id, agoMS := range heard {
		if agoMS <= heardWindow.Milliseconds() {
			holders = append(holders, fsm.WorkerView{WorkerID: id, SeenT: now.T - agoMS})
		}
	}
	slices.SortFunc(holders, func(a, b fsm.WorkerView) int { return strings.Compare(a.WorkerID, b.WorkerID) })
	return holders[:min(len(holders), workersMax)]
}

func appendWorkers(b []byte, workers []fsm.WorkerView) []byte {
	b = jsonout.List(b, `{"success":true,"workers":`, len(workers), func(b []byte, i int) []byte {
		w := &workers[i]
		b = jsonout.StringField(b, `{"worker_id":`, w.WorkerID)
		b = jsonout.IntField(b, `,"claimed":`, int64(w.Claimed))
		b = jsonout.Uints(b, `,"task_ids":`, w.TaskIDs)
		return append(jsonout.TimeField(b, `,"last_seen_at":`, w.SeenT), '}')
	})
	return append(b, '}')
}

const (
	// askedWindowMS is the time within which a worker must have asked for a type to count as one that takes its tasks.
	// Claims do not wait longer than that, and count once more when their wait ends.
	askedWindowMS = wire.WaitMSMax
	// heardWindow is the time for which a worker without claims is shown after its last request.
	heardWindow = 10 * time.Minute
)

// presence is one node's memory of workers: when it last heard from each, and when claims last asked for each type. It
// is bounded, kept in memory, and goes by a monotonic clock; a new leader begins with nothing. Every claim passes
// through it, so recording a known name costs only a hash and a map write under a lock that few share, and no
// allocation. It is safe for concurrent use.
type presence struct {
	begun   time.Time
	workers *times
	types   *times
	anyType atomic.Int64 // when a claim last asked for any type, 0 = never
	// elsewhere is the time at which this node last forwarded a request, 0 = never; before that, other nodes may have
	// been asked.
	elsewhere atomic.Int64
}

// newPresence returns a presence without workers. begun must not be after the first time that is noted.
func newPresence(begun time.Time) *presence {
	return &presence{begun: begun, workers: newTimes(), types: newTimes()}
}

// clock returns t in milliseconds since begun, above 0, by a monotonic clock.
func (p *presence) clock(t time.Time) int64 { return t.Sub(p.begun).Milliseconds() + 1 }

// note records, before a command is proposed, which worker sent it and which types it asks for.
func (p *presence) note(cmd command.Command, at time.Time) {
	about := command.AboutOf(cmd)
	if about.WorkerID != "" {
		p.workers.note(about.WorkerID, p.clock(at))
	}
	if about.Claims {
		p.noteClaim(about.Claimer, about.Types, at)
	}
	for _, op := range about.Ops {
		p.note(op, at)
	}
}

// noteClaim is note for a worker's claim of those types; no types mean any.
func (p *presence) noteClaim(workerID string, types []string, at time.Time) {
	p.noteAsked(types, at)
	p.workers.note(workerID, p.clock(at))
}

// noteAsked records that a claim asked for those types until at; no types mean any.
func (p *presence) noteAsked(types []string, at time.Time) {
	clock := p.clock(at)
	if len(types) == 0 {
		p.anyType.Store(clock)
		return
	}
	for _, t := range types {
		p.types.note(t, clock)
	}
}

// noteElsewhere records that a request was forwarded to another node.
func (p *presence) noteElsewhere(at time.Time) { p.elsewhere.Store(p.clock(at)) }

// asked returns how long ago, in milliseconds, a claim last asked for tasks of that type. known is false if no claim
// did since this node became the node that workers ask; lately says whether that is recent enough to count. Workers ask
// the leader, so that only the leader's answer means something.
func (p *presence) asked(taskType string, now time.Time) (agoMS int64, known, lately bool) {
	last := max(p.types.last(taskType), p.anyType.Load())
	ago := p.clock(now) - last
	return max(ago, 0), last > p.elsewhere.Load(), last != 0 && ago <= askedWindowMS
}

// heard returns how long ago, in milliseconds, each worker was heard from.
func (p *presence) heard(now time.Time) (agoMS map[string]int64) {
	clock := p.clock(now)
	agoMS = p.workers.all()
	for id, last := range agoMS {
		agoMS[id] = max(clock-last, 0)
	}
	return agoMS
}

// Bounds of a table of names; each shard holds its part.
const (
	namesMax = 16_384
	shards   = 64
	shardMax = namesMax / shards
)

// times remembers when each of many names was last seen, by its owner's clock. A full shard forgets the name that it
// has not seen for the longest time.
type times struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu sync.Mutex
	at map[string]*list.Element // guarded by mu
	// order has a *seen for each name, the least recent first. Guarded by mu.
	order list.List
}

// seen is a name and when it was last seen.
type seen struct {
	name string
	at   int64
}

func newTimes() *times {
	l := &times{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].at = make(map[string]*list.Element)
	}
	return l
}

func (l *times) shard(name string) *shard {
	return &l.shards[maphash.String(l.seed, name)%shards]
}

// note records that name was seen at at. It keeps name if it is new. Its cost does not depend on the number of names,
// because one claim may list 1,000 new ones.
func (l *times) note(name string, at int64) {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.at[name]
	switch {
	case e != nil:
		last := e.Value.(*seen)
		last.at = max(last.at, at)
	case s.order.Len() < shardMax:
		e = s.order.PushBack(&seen{name, at})
		s.at[name] = e
	default: // the oldest makes room
		e = s.order.Front()
		oldest := e.Value.(*seen)
		delete(s.at, oldest.name)
		*oldest = seen{name, at}
		s.at[name] = e
	}
	s.order.MoveToBack(e)
}

// last returns when name was last seen, 0 if unknown.
func (l *times) last(name string) int64 {
	s := l.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.at[name]; e != nil {
		return e.Value.(*seen).at
	}
	return 0
}

// all returns all names and when each was last seen.
func (l *times) all() map[string]int64 {
	all := make(map[string]int64)
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		for name, e := range s.at {
			all[name] = e.Value.(*seen).at
		}
		s.mu.Unlock()
	}
	return all
}
