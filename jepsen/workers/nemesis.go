package workers

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

const (
	// strikeTimeout is how long a strike waits for its call.
	strikeTimeout = 8 * time.Second
	// leaderTimeout bounds the wait for a leader, and for a node that was started.
	leaderTimeout = time.Minute
	// downMax is how long a killed node stays down at most.
	downMax = 1500 * time.Millisecond
	// calmMax is how long a worker is left alone at most.
	calmMax = 3 * time.Second
	// overMax is how much longer than its lease a worker is stopped or cut off: at
	// least half of that, so that somebody else gets its tasks.
	overMax = 3 * time.Second
)

// tally counts what was done.
type tally struct {
	mu   sync.Mutex
	done map[string]int
}

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[what]++
}

// leaderNemesis kills the leader at calls of the workers.
type leaderNemesis struct {
	*run
	rng *rand.Rand
}

// strike kills the leader at each kind of call in each phase, in a random order,
// again and again until end.
func (n *leaderNemesis) strike(ctx context.Context, end time.Time) error {
	for {
		for _, i := range n.rng.Perm(len(calls) * len(phases)) {
			if !time.Now().Before(end) || ctx.Err() != nil {
				return nil
			}
			k := &strike{call: calls[i%len(calls)], phase: phases[i/len(calls)], slot: anySlot, drop: n.rng.Intn(2) == 0}
			if err := n.killAt(ctx, k); err != nil {
				return err
			}
		}
	}
}

// killAt kills the leader at a call, and starts it again.
func (n *leaderNemesis) killAt(ctx context.Context, k *strike) error {
	leader, err := waitLeader(ctx, n.cluster)
	if err != nil {
		return err
	}
	var errKill error
	k.do = func() { errKill = leader.Kill() }
	if !n.crew.strikes.hitWithin(ctx, k, strikeTimeout) {
		n.tally.count("strikes at calls that did not come")
		return nil
	}
	if errKill != nil {
		return errKill
	}
	n.say("%s, the leader, killed %v", leader.ID, k)
	n.tally.count(fmt.Sprintf("leader killed %s the %s", k.phase, k.call))
	wait(ctx, time.Duration(n.rng.Int63n(int64(downMax))))
	if err := leader.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	return leader.WaitReady(ctx)
}

// hitWithin arms the strike and waits until it has been done. It returns false if
// its call did not come in time.
func (s *strikes) hitWithin(ctx context.Context, k *strike, d time.Duration) bool {
	s.arm(k)
	select {
	case <-k.hit:
		return true
	case <-time.After(d):
	case <-ctx.Done():
	}
	if s.disarm(k) {
		return false
	}
	<-k.hit // a call has it
	return true
}

func waitLeader(ctx context.Context, c *procs.Cluster) (*procs.Node, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, leaderTimeout, errors.New("no leader for long"))
	defer cancel()
	return c.WaitLeader(ctx)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// workerNemesis troubles one worker.
type workerNemesis struct {
	*run
	slot *slot
	rng  *rand.Rand
}

// trouble does to the worker one thing after the other, with calm in between,
// until end. Then all is whole and runs again.
func (n *workerNemesis) trouble(ctx context.Context, end time.Time) error {
	acts := []func(context.Context) error{
		n.pause, n.pause, n.pauseAtCall, n.pauseAtCall, n.pauseAtCall, n.cutOff, n.cutOff, n.cutOffAtCall, n.kill, n.killAtCall, n.end,
	}
	for {
		wait(ctx, time.Duration(n.rng.Int63n(int64(calmMax))))
		if !time.Now().Before(end) || ctx.Err() != nil {
			return nil
		}
		if !n.slot.process.Running() {
			return fmt.Errorf("worker %s has ended by itself, exit code %d:\n%s", n.slot.process.ID, n.slot.process.ExitCode(), n.slot.process.LogTail(20))
		}
		if err := acts[n.rng.Intn(len(acts))](ctx); err != nil {
			return err
		}
	}
}

// over is a time longer than the worker's lease, and long enough for somebody
// else to get its tasks.
func (n *workerNemesis) over() time.Duration {
	return n.slot.lease + overMax/2 + time.Duration(n.rng.Int63n(int64(overMax/2)))
}

// pause stops the process for longer than its lease.
func (n *workerNemesis) pause(ctx context.Context) error {
	if err := n.slot.process.Pause(); err != nil {
		return err
	}
	return n.resume(ctx, "")
}

// resume has a stopped process go on, after longer than its lease.
func (n *workerNemesis) resume(ctx context.Context, at string) error {
	n.tally.count("worker stopped past its lease" + at)
	d := n.over()
	n.say("%s stopped for %v%s", n.slot.process.ID, d.Round(time.Millisecond), at)
	wait(ctx, d)
	return n.slot.process.Continue()
}

// atCall has something done to the worker at its next call of a kind. It returns
// how to say that, "" if the call did not come.
func (n *workerNemesis) atCall(ctx context.Context, do func() error) (string, error) {
	k := &strike{
		call: calls[n.rng.Intn(len(calls))], phase: phases[n.rng.Intn(len(phases))], slot: n.slot.number, drop: n.rng.Intn(4) == 0,
	}
	var err error
	k.do = func() { err = do() }
	if !n.crew.strikes.hitWithin(ctx, k, strikeTimeout) {
		n.tally.count("strikes at calls that did not come")
		return "", nil
	}
	return fmt.Sprintf(" %s the %s", k.phase, k.call), err
}

// pauseAtCall stops the process at a call for longer than its lease. The answer
// waits for it, unless it is dropped.
func (n *workerNemesis) pauseAtCall(ctx context.Context) error {
	at, err := n.atCall(ctx, n.slot.process.Pause)
	if err != nil || at == "" {
		return err
	}
	return n.resume(ctx, at)
}

// cutOff cuts the worker off from the nodes for longer than its lease.
func (n *workerNemesis) cutOff(ctx context.Context) error {
	how := []cut{silent, closed}[n.rng.Intn(2)]
	n.slot.way.set(how)
	n.repair(ctx, how, "")
	return nil
}

func (n *workerNemesis) cutOffAtCall(ctx context.Context) error {
	how := []cut{silent, silent, closed}[n.rng.Intn(3)]
	at, err := n.atCall(ctx, func() error { n.slot.way.set(how); return nil })
	if err != nil || at == "" {
		return err
	}
	n.repair(ctx, how, at)
	return nil
}

// repair makes the network whole after longer than the lease.
func (n *workerNemesis) repair(ctx context.Context, how cut, at string) {
	n.tally.count(fmt.Sprintf("worker cut off past its lease, %s%s", how, at))
	d := n.over()
	n.say("%s cut off for %v, %s%s", n.slot.process.ID, d.Round(time.Millisecond), how, at)
	wait(ctx, d)
	n.slot.way.set(whole)
}

// kill ends the process, and starts another in its place.
func (n *workerNemesis) kill(ctx context.Context) error {
	n.tally.count("worker killed")
	n.say("%s killed", n.slot.process.ID)
	if err := n.slot.kill(); err != nil {
		return err
	}
	return n.next(ctx)
}

func (n *workerNemesis) killAtCall(ctx context.Context) error {
	at, err := n.atCall(ctx, n.slot.kill)
	if err != nil || at == "" {
		return err
	}
	n.tally.count("worker killed" + at)
	n.say("%s killed%s", n.slot.process.ID, at)
	return n.next(ctx)
}

// end asks the process to end, and starts another in its place.
func (n *workerNemesis) end(ctx context.Context) error {
	n.tally.count("worker asked to end")
	n.say("%s asked to end", n.slot.process.ID)
	if err := n.slot.stop(ctx); err != nil {
		return err
	}
	return n.next(ctx)
}

func (n *workerNemesis) next(ctx context.Context) error {
	wait(ctx, time.Duration(n.rng.Int63n(int64(calmMax))))
	return n.slot.start()
}
