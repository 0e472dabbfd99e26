package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// storm is a node with many waiting claims while tasks, limits and claims change at random.
type storm struct {
	*testing.T
	node    *Node
	rand    *rand.Rand
	waiting []*claimer
	held    []command.Hold
	steps   []string

	proposing sync.WaitGroup
}

func (s *storm) note(format string, args ...any) {
	s.steps = append(s.steps, fmt.Sprintf(format, args...))
}

// propose proposes cmd without waiting for the outcome.
func (s *storm) propose(cmd command.Command) {
	s.note("%+v", cmd)
	s.proposing.Go(func() {
		if _, err := s.node.Propose(context.Background(), cmd); err != nil {
			s.Errorf("%+v: %v", cmd, err)
		}
	})
}

func (s *storm) taskType() string { return string(rune('a' + s.rand.IntN(3))) }

func (s *storm) tasks() []fsm.NewTask {
	tasks := make([]fsm.NewTask, 1+s.rand.IntN(2))
	for i := range tasks {
		tasks[i] = fsm.NewTask{Type: s.taskType(), Params: []byte(`{}`), MaxAttempts: s.rand.Int32N(4), Priority: s.rand.Int32N(3)}
		if s.rand.IntN(3) == 0 {
			tasks[i].Group = "g"
		}
		if s.rand.IntN(4) == 0 {
			tasks[i].DelayMS = 1 + s.rand.Int64N(3000)
		}
	}
	return tasks
}

func (s *storm) claim() command.ClaimNext {
	c := command.ClaimNext{WorkerID: "w", Limit: 1 + s.rand.Int32N(3), LeaseMS: 500 + s.rand.Int64N(20_000)}
	if s.rand.IntN(3) > 0 {
		for _, t := range []string{"a", "b", "c"} {
			if s.rand.IntN(2) == 0 {
				c.Types = append(c.Types, t)
			}
		}
	}
	if s.rand.IntN(3) == 0 {
		c.MoreAttempts = s.rand.Int32N(3)
	}
	if s.rand.IntN(4) == 0 {
		c.SortBy = command.SortRandom
	}
	if s.rand.IntN(5) == 0 {
		c.RequestID = fmt.Sprint("r", s.rand.IntN(3))
	}
	return c
}

func (s *storm) setType() command.SetType {
	return command.SetType{Type: s.taskType(), Set: fsm.TypePaused | fsm.TypeMaxClaimed | fsm.TypeRateLimit, Settings: fsm.TypeSettings{
		Paused: s.rand.IntN(4) == 0, MaxClaimed: s.rand.Int32N(4), RateLimit: []int64{0, 0, 500_000, 3_000_000}[s.rand.IntN(4)],
	}}
}

func (s *storm) step() {
	switch k := s.rand.IntN(20); {
	case k < 3:
		s.propose(command.Submit{Tasks: s.tasks()})
	case k < 12:
		c := s.claim()
		s.note("wait %+v", c)
		w := &claimer{claim: c, done: make(chan struct{})}
		var ctx context.Context
		ctx, w.gone = context.WithCancel(context.Background())
		wait := time.Duration(1+s.rand.IntN(30_000)) * time.Millisecond
		go func() {
			defer close(w.done)
			w.p, w.err = s.node.Claim(ctx, c, wait, nil)
		}()
		s.waiting = append(s.waiting, w)
	case k < 14 && len(s.waiting) > 0:
		s.note("one goes")
		s.waiting[s.rand.IntN(len(s.waiting))].gone()
	case k < 15:
		s.propose(s.setType())
	case len(s.held) > 0:
		at := s.rand.IntN(len(s.held))
		h := s.held[at]
		s.held = append(s.held[:at], s.held[at+1:]...)
		s.propose([]command.Command{command.Complete{Hold: h}, command.Fail{Hold: h, Error: "x"}, command.Release{Hold: h}, command.Release{Hold: h, DelayMS: 700}}[s.rand.IntN(4)])
	}
}

// collect collects the available answers.
func (s *storm) collect() {
	synctest.Wait()
	var still []*claimer
	for _, w := range s.waiting {
		select {
		case <-w.done:
			w.gone()
			for _, c := range w.p.Result.Claims {
				if !w.p.Result.Repeated {
					s.held = append(s.held, command.Hold{ID: c.Task.ID, WorkerID: "w", Token: c.Token})
				}
			}
		default:
			still = append(still, w)
		}
	}
	s.waiting = still
}

// check ensures that no claim waits for a task that is there as soon as no command is under
// way.
func (s *storm) check() {
	var problem string
	for range 20 {
		if problem = s.problem(); problem == "" {
			return
		}
		<-time.After(7 * time.Millisecond)
	}
	s.Error(problem)
}

func (s *storm) problem() (problem string) {
	s.collect()
	l := s.node.leader.Load()
	if count := l.waiters.Len(); count != len(s.waiting) {
		return fmt.Sprintf("%d are parked, %d wait", count, len(s.waiting))
	}
	l.read(func(m *fsm.Machine) {
		for _, w := range s.waiting {
			if l.claimable(m, w.claim) {
				problem = fmt.Sprintf("%+v waits for what is there", w.claim)
			}
		}
	})
	return problem
}

// Whatever happens, no claim waits for a task that is there once it is quiet.
func TestWaiters_nobodyIsForgotten(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			n, h := newHeldNode(t)
			h.set(func(*Node, fsm.Stamp, []command.Command) { <-time.After(5 * time.Millisecond) })
			s := &storm{T: t, node: n, rand: rand.New(rand.NewPCG(seed, 1))}
			for round := range 60 {
				s.note("round %d", round)
				for range 1 + s.rand.IntN(8) {
					s.step()
					<-time.After(time.Duration(s.rand.IntN(8)) * time.Millisecond)
					s.collect()
				}
				<-time.After(time.Duration(s.rand.IntN(1200)) * time.Millisecond)
				s.collect()
				if s.rand.IntN(4) == 0 {
					s.proposing.Wait()
					<-time.After(dutyInterval + 100*time.Millisecond)
					s.check()
				}
				if t.Failed() {
					t.Fatalf("seed %d:\n%s", seed, strings.Join(s.steps, "\n"))
				}
			}
			for _, w := range s.waiting {
				w.gone()
			}
			<-time.After(time.Second)
			s.collect()
			s.proposing.Wait()
			s.check()
			if len(s.waiting) > 0 {
				t.Errorf("%d still wait", len(s.waiting))
			}
		})
	}
}
