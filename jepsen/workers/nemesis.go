package workers

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
)

const (
	// strikeTimeout bounds the wait of a strike for its call.
	strikeTimeout = 8 * time.Second
	// leaderTimeout bounds the wait for a leader, and for a node that was started.
	leaderTimeout = time.Minute
	// downMax bounds the time for which a killed node stays down.
	downMax = 1500 * time.Millisecond
	// calmMax bounds the time for which a worker is left alone, or has no process.
	calmMax = 3 * time.Second
	// overMax bounds the time by which a worker is stopped or cut off for longer than its
	// lease. It is at least half of that, so that another worker gets its tasks.
	overMax = 3 * time.Second
)

// count counts what was done.
func (r *run) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.done[what]++
}

// struck calls do at the next call of that kind, and returns its error. hit is false if the
// call did not come in time.
func (r *run) struck(ctx context.Context, k *strike, do func() error) (hit bool, err error) {
	k.do = func() { err = do() }
	if hit = r.crew.strikes.hitWithin(ctx, k, strikeTimeout); !hit {
		r.count("strikes at calls that did not come")
	}
	return hit, err
}

// killLeaders kills the leader at each kind of call in each phase, in random order,
// repeatedly until end.
func (r *run) killLeaders(ctx context.Context, rng *rand.Rand, end time.Time) error {
	for {
		for _, i := range rng.Perm(len(calls) * len(phases)) {
			if !time.Now().Before(end) || ctx.Err() != nil {
				return nil
			}
			k := &strike{call: calls[i%len(calls)], phase: phases[i/len(calls)], slot: anySlot, drop: rng.Intn(2) == 0}
			if err := r.killLeader(ctx, rng, k); err != nil {
				return err
			}
		}
	}
}

// killLeader kills the leader at a call, and starts it again.
func (r *run) killLeader(ctx context.Context, rng *rand.Rand, k *strike) error {
	waiting, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	leader, err := r.cluster.WaitLeader(waiting)
	if err != nil {
		return err
	}
	if hit, err := r.struck(ctx, k, leader.Kill); !hit || err != nil {
		return err
	}
	r.say("%s, the leader, killed %v", leader.ID, k)
	r.count(fmt.Sprintf("leader killed %s the %s", k.phase, k.call))
	pause.For(ctx, time.Duration(rng.Int63n(int64(downMax))))
	starting, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	return leader.StartReady(starting)
}

// trouble is something that happens to a worker.
type trouble struct {
	what          string
	alone, atCall int // frequency, by itself and at one of the worker's calls
	// begin begins it. It lasts longer than the worker's lease, and long enough for another
	// worker to get its tasks; if ends is set, the process is gone, for no longer than
	// others are calm.
	begin func(ctx context.Context) error
	ends  bool
	over  func() error
}

// troubles returns those for the slot's worker.
func (s *slot) troubles() []trouble {
	cut := func(how cut) func(context.Context) error {
		return func(context.Context) error { s.way.set(how); return nil }
	}
	repair := func() error { s.way.set(whole); return nil }
	stopped := trouble{"stopped past its lease", 2, 3, whenever(func() error { return s.process().Pause() }), false, func() error { return s.process().Continue() }}
	var killed []trouble
	if len(s.crew.cfg.Served) > 0 { // if it was stopped itself, its programs would go on, see docs/workers.md
		stopped = trouble{"with its programs stopped past its lease", 2, 3, whenever(s.signal(syscall.SIGSTOP)), false, s.signal(syscall.SIGCONT)}
		killed = []trouble{{"with its programs killed", 1, 1, whenever(s.signal(syscall.SIGKILL)), true, func() error { return nil }}}
	}
	return append([]trouble{
		stopped,
		{"cut off past its lease, silent", 1, 1, cut(silent), false, repair},
		{"cut off past its lease, closed", 1, 1, cut(closed), false, repair},
		{"without its open connections past its lease", 1, 1, cut(frozen), false, repair},
		{"without new connections past its lease", 1, 1, cut(shut), false, repair},
		{"killed", 1, 1, whenever(func() error { return s.process().Kill() }), true, s.start},
		{"asked to end", 1, 0, s.stop, true, s.start},
	}, killed...)
}

// whenever returns do as a function that ignores its context.
func whenever(do func() error) func(context.Context) error {
	return func(context.Context) error { return do() }
}

// signal returns a function that signals the programs of the slot's worker.
func (s *slot) signal(sig syscall.Signal) func() error {
	return func() error {
		programs, err := children(s.process().PID())
		for _, pid := range programs {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
		return err
	}
}

// children returns the pids of a process's children.
func children(parent int) (pids []int, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil { // it has ended
			continue
		}
		// The name, in parentheses, may have anything in it.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		pid, errPID := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if errPID == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// trouble causes one trouble after the other for the slot's worker, with calm in between,
// until end. Then everything is repaired and runs again.
func (r *run) trouble(ctx context.Context, s *slot, rng *rand.Rand, end time.Time) error {
	type come struct {
		trouble
		atCall bool
	}
	var deck []come
	for _, t := range s.troubles() {
		for i := range t.alone + t.atCall {
			deck = append(deck, come{t, i >= t.alone})
		}
	}
	for {
		pause.For(ctx, time.Duration(rng.Int63n(int64(calmMax))))
		if !time.Now().Before(end) || ctx.Err() != nil {
			return nil
		}
		if p := s.process(); !p.Running() {
			return fmt.Errorf("worker %s has ended by itself, exit code %d:\n%s", p.ID, p.ExitCode(), p.LogTail(20))
		}
		next := deck[rng.Intn(len(deck))]
		if err := r.befall(ctx, s, rng, next.trouble, next.atCall); err != nil {
			return err
		}
	}
}

// befall causes it once, from its beginning to its end. At a call the answer waits for the
// worker, unless it is dropped.
func (r *run) befall(ctx context.Context, s *slot, rng *rand.Rand, t trouble, atCall bool) error {
	at := ""
	if atCall {
		k := &strike{call: calls[rng.Intn(len(calls))], phase: phases[rng.Intn(len(phases))], slot: s.number, drop: rng.Intn(4) == 0}
		if hit, err := r.struck(ctx, k, func() error { return t.begin(ctx) }); !hit || err != nil {
			return err
		}
		at = fmt.Sprintf(" %s the %s", k.phase, k.call)
	} else if err := t.begin(ctx); err != nil {
		return err
	}
	lasts := time.Duration(rng.Int63n(int64(calmMax)))
	if !t.ends {
		lasts = s.told.Lease + overMax/2 + time.Duration(rng.Int63n(int64(overMax/2)))
	}
	r.count("worker " + t.what + at)
	r.say("%s %s for %v%s", s.process().ID, t.what, lasts.Round(time.Millisecond), at)
	pause.For(ctx, lasts)
	return t.over()
}
