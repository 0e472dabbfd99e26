package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/clustertest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// every returns a schedule with that interval, which begins one interval from now and
// submits even if the last task has not ended.
func every(name string, interval time.Duration) fsm.Schedule {
	return fsm.Schedule{
		Name: name, Task: fsm.NewTask{Type: name, Params: []byte("1")}, EveryMS: interval.Milliseconds(),
		OverlapAllow: true, NextRunAt: time.Now().Add(interval).UnixMilli(),
	}
}

// scheduled returns the calendar times at which tasks of the type were submitted, according
// to n's state, in order.
func scheduled(n *cluster.Node, taskType string) (times []int64) {
	_, _ = n.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
		for q := (fsm.ListQuery{Filter: fsm.Filter{Type: taskType}, Limit: 1000}); ; {
			page := m.List(q)
			for _, t := range page.Tasks {
				times = append(times, t.CreatedAt)
			}
			if q.From = page.Next; q.From == 0 {
				return
			}
		}
	})
	return times
}

func scheduleOf(n *cluster.Node, name string) (v fsm.ScheduleView) {
	_, _ = n.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
		if have := m.Schedule(name); have != nil {
			v = *have
		}
	})
	return v
}

// Each slot gets its task at once.
func TestSchedules_everySlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		<-time.After(1234 * time.Millisecond)
		s := every("tick", 1500*time.Millisecond)
		first := s.NextRunAt
		c.Propose(command.SetSchedule{Schedule: s})
		nightly := fsm.Schedule{
			Name: "nightly", Task: fsm.NewTask{Type: "nightly"}, Cron: "1 1 * * *", Timezone: "Europe/Prague",
			NextRunAt: time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC).UnixMilli(),
		}
		c.Propose(command.SetSchedule{Schedule: nightly})
		paused := every("paused", time.Second)
		paused.Paused = true
		c.Propose(command.SetSchedule{Schedule: paused})
		<-time.After(30 * time.Second)
		times := scheduled(leader, "tick")
		if len(times) != 19 && len(times) != 20 {
			t.Errorf("%d tasks in 30 s", len(times))
		}
		for i, at := range times {
			if late := at - first - 1500*int64(i); late < 0 || late > 20 {
				t.Errorf("the task of slot %d is %d ms late", i, late)
			}
		}
		c.Propose(command.DeleteSchedule{Name: "tick"})
		<-time.After(45 * time.Second)
		if more := scheduled(leader, "tick"); len(more) > len(times)+1 {
			t.Errorf("%d tasks after the schedule was deleted", len(more)-len(times))
		}
		if len(scheduled(leader, "nightly")) != 1 || len(scheduled(leader, "paused")) != 0 {
			t.Errorf("nightly at %v, paused at %v", scheduled(leader, "nightly"), scheduled(leader, "paused"))
		}
		want := time.Date(2000, 1, 2, 0, 1, 0, 0, time.UTC).UnixMilli()
		if v := scheduleOf(leader, "nightly"); v.NextRunAt != want || v.LastTaskID == 0 || v.LastRunAt != nightly.NextRunAt {
			t.Errorf("nightly is %+v, want the next run at %d", v, want)
		}
		c.EnsureSame()
	})
}

// Whatever happens to leaders and clocks around a slot, it gets exactly one task.
func TestSchedules_oncePerSlot(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(c *clustertest.Cluster){
		"the leader hands over": func(c *clustertest.Cluster) {
			leader := c.Leader()
			place := c.Place(leader)
			_ = leader.Close(context.Background())
			c.Restart(place)
		},
		"the leader is stopped": func(c *clustertest.Cluster) {
			place := c.Place(c.Leader())
			c.Stop(place)
			<-time.After(5 * time.Second)
			c.Start(place)
		},
		"the leader is cut off": func(c *clustertest.Cluster) {
			c.Partition(c.Leader())
			<-time.After(5 * time.Second)
			c.Heal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.New(t, 3)
				c.Leader()
				const interval = 12 * time.Second
				s := every("tick", interval)
				first := s.NextRunAt
				c.Propose(command.SetSchedule{Schedule: s})
				const slots = 12
				for slot := range int64(slots) {
					at := time.UnixMilli(first + slot*interval.Milliseconds())
					// From before the slot to after it, in steps of a round trip.
					<-time.After(time.Until(at) + time.Duration(slot-slots/2)*time.Millisecond)
					disturb(c)
				}
				<-time.After(5 * time.Second)
				times := scheduled(c.Leader(), "tick")
				if len(times) != slots {
					t.Fatalf("%d tasks of %d slots", len(times), slots)
				}
				for i, at := range times {
					if late := at - first - int64(i)*interval.Milliseconds(); late < 0 || late > 10_000 {
						t.Errorf("the task of slot %d is %d ms late", i, late)
					}
				}
				c.EnsureSame()
			})
		})
	}
}

// The calendar jumps ahead with the wall clocks, and waits for clocks that went back: slots
// that were passed are made up by one task, and none comes twice.
func TestSchedules_clocksJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		c.Leader()
		jump := func(d time.Duration) {
			for i := range c.Len() {
				c.Clock(i).Jump(d)
			}
		}
		const interval = 20 * time.Second
		c.Propose(command.SetSchedule{Schedule: every("tick", interval)})
		<-time.After(2*interval + interval/2)
		jump(time.Hour)
		<-time.After(7 * time.Second) // the leader has read all clocks again
		if n := len(scheduled(c.Leader(), "tick")); n != 3 {
			t.Errorf("%d tasks after two intervals and a jump by an hour, want 3", n)
		}
		<-time.After(2 * interval)
		jump(-10 * time.Minute)
		c.Restart(c.Place(c.Leader()))
		<-time.After(6 * interval)
		seen := map[int64]bool{}
		for _, at := range scheduled(c.Leader(), "tick") {
			slot := at / interval.Milliseconds()
			if seen[slot] {
				t.Errorf("two tasks of the slot before %s", time.UnixMilli(at).UTC())
			}
			seen[slot] = true
		}
		// The last 6 intervals went at half speed.
		if n := len(seen); n < 3+2+2 || n > 3+2+4 {
			t.Errorf("%d tasks in all", n)
		}
		c.EnsureSame()
	})
}

// Slots that were missed without a leader are made up by one task, or skipped if the
// schedule says so and they are more than a minute late.
func TestSchedules_catchUp(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name    string
		skip    bool
		down    time.Duration
		tasks   int
		skipped uint64
	}{
		{"one task for all", false, 35 * time.Minute, 1, 0},
		{"none that is too late", true, 35 * time.Minute, 0, 3},
		{"a slot that is little late", true, 10*time.Minute + 20*time.Second, 1, 0},
		{"the last of several is little late", true, 30*time.Minute + 20*time.Second, 1, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := clustertest.New(t, 3)
				c.Leader()
				s := every("tick", 10*time.Minute)
				s.CatchUpSkip = x.skip
				first := s.NextRunAt
				c.Propose(command.SetSchedule{Schedule: s})
				for i := range c.Len() {
					c.Stop(i)
				}
				<-time.After(x.down)
				for i := range c.Len() {
					c.Start(i)
				}
				<-time.After(20 * time.Second)
				leader := c.Leader()
				if times := scheduled(leader, "tick"); len(times) != x.tasks {
					t.Errorf("tasks at %v, want %d", times, x.tasks)
				}
				v := scheduleOf(leader, "tick")
				now := time.Now().UnixMilli()
				if v.Skipped != x.skipped || v.NextRunAt <= now || v.NextRunAt > now+s.EveryMS || (v.NextRunAt-first)%s.EveryMS != 0 {
					t.Errorf("at %d skipped %d, next at %d, want %d and the next one of %d and so on", now, v.Skipped, v.NextRunAt, x.skipped, first)
				}
			})
		})
	}
}

// With that setting, a slot is skipped while the last task has not ended.
func TestSchedules_overlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		s := every("tick", 10*time.Second)
		s.OverlapAllow = false
		c.Propose(command.SetSchedule{Schedule: s})
		<-time.After(35 * time.Second)
		v := scheduleOf(leader, "tick")
		if n := len(scheduled(leader, "tick")); n != 1 || v.Skipped != 2 {
			t.Errorf("%d tasks, %d slots passed over, want 1 and 2", n, v.Skipped)
		}
		c.Propose(command.Cancel{ID: v.LastTaskID})
		<-time.After(10 * time.Second)
		if n := len(scheduled(leader, "tick")); n != 2 {
			t.Errorf("%d tasks after the first ended, want 2", n)
		}
	})
}

// All slots that are due at once are done at once, many in one entry.
func TestSchedules_manyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		at := time.Now().Add(time.Minute).UnixMilli()
		const count, clients = 2500, 50
		var wg sync.WaitGroup
		for client := range clients {
			wg.Go(func() {
				for i := client; i < count; i += clients {
					name := fmt.Sprintf("s%d", i)
					if _, err := leader.Propose(context.Background(), command.SetSchedule{Schedule: fsm.Schedule{
						Name: name, Task: fsm.NewTask{Type: "tick"}, Cron: "*/10 * * * *", NextRunAt: at,
					}}); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
		wg.Wait()
		<-time.After(time.Until(time.UnixMilli(at)) - 100*time.Millisecond)
		before, _ := leader.StateHash()
		<-time.After(300 * time.Millisecond)
		after, _ := leader.StateHash()
		if n := len(scheduled(leader, "tick")); n != count || after-before > 6 {
			t.Errorf("%d tasks of %d schedules, %d entries", n, count, after-before)
		}
	})
}

// A schedule that this node cannot read is skipped, and neither keeps the node busy nor
// delays the others.
func TestSchedules_unreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3)
		leader := c.Leader()
		s := every("tick", time.Minute)
		c.Propose(command.SetSchedule{Schedule: s})
		s.Name, s.Task.Type, s.EveryMS, s.Cron, s.Timezone = "lost", "lost", 0, "* * * * *", "Atlantis/Poseidonis"
		c.Propose(command.SetSchedule{Schedule: s})
		<-time.After(time.Minute + 30*time.Second)
		v := scheduleOf(leader, "lost")
		if len(scheduled(leader, "lost")) != 0 || v.Skipped != 1 || v.NextRunAt < time.Now().Add(57*time.Minute).UnixMilli() {
			t.Errorf("what cannot be read is %+v", v)
		}
		if n := len(scheduled(leader, "tick")); n != 1 {
			t.Errorf("%d tasks in a minute", n)
		}
	})
}

// While there is no room for tasks nothing is submitted; it is made up later.
func TestSchedules_waitForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.MemoryLimit = 4 << 20 })
		leader := c.Leader()
		c.Propose(command.SetSchedule{Schedule: every("tick", 20*time.Second)})
		big := c.Propose(command.Submit{Tasks: []fsm.NewTask{{Type: "big", Params: make([]byte, 4<<20)}}}).Result.Submitted[0].Task.ID
		if _, err := leader.Propose(context.Background(), submitOf("mail", 1)); !errors.Is(err, nodes.ErrOverloaded) {
			t.Fatalf("submit: %v, want ErrOverloaded", err)
		}
		if _, err := leader.Propose(context.Background(), command.SetSchedule{Schedule: every("more", time.Minute)}); !errors.Is(err, nodes.ErrOverloaded) {
			t.Errorf("one more schedule: %v, want ErrOverloaded", err)
		}
		<-time.After(50 * time.Second)
		if n := len(scheduled(leader, "tick")); n != 0 {
			t.Errorf("%d tasks without room", n)
		}
		c.Propose(command.Cancel{ID: big})
		c.Propose(command.Delete{ID: big})
		<-time.After(5 * time.Second)
		if n := len(scheduled(leader, "tick")); n != 1 {
			t.Errorf("%d tasks once there is room, want 1", n)
		}
	})
}

// Many slots of large tasks at once do not exceed the limit by far.
func TestSchedules_largeTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mib, limit = 1 << 20, 32 << 20
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.MemoryLimit = limit })
		leader := c.Leader()
		s := every("large", 20*time.Second)
		s.Task.Params = make([]byte, mib)
		for i := range 28 {
			s.Name = fmt.Sprintf("large%02d", i)
			c.Propose(command.SetSchedule{Schedule: s})
		}
		<-time.After(40 * time.Second)
		var bytes int64
		_, _ = leader.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) { bytes = m.Bytes() })
		if bytes <= limit || bytes > limit+9*mib {
			t.Errorf("the state takes %d MiB, want what the limit allows and one entry's tasks", bytes/mib)
		}
	})
}

// The leader gives the trail its configured bounds.
func TestTrailBounds(t *testing.T) {
	t.Parallel()
	bounds := func(n *cluster.Node) (has command.SetTrail) {
		_, _ = n.ReadStale(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) { has = m.TrailBounds() })
		return has
	}
	synctest.Test(t, func(t *testing.T) {
		var age time.Duration
		c := clustertest.New(t, 3, func(cfg *cluster.Config) { cfg.TrailBytes, cfg.TrailAge = 3<<20, age })
		c.Leader()
		<-time.After(5 * time.Second)
		if has, want := bounds(c.Leader()), (command.SetTrail{Bytes: 3 << 20, AgeMS: fsm.New().TrailBounds().AgeMS}); has != want {
			t.Errorf("bounds are %+v, want %+v", has, want)
		}
		before, _ := c.Leader().StateHash()
		<-time.After(30 * time.Second)
		if now, _ := c.Leader().StateHash(); now-before > 5 {
			t.Errorf("%d entries of an idle cluster", now-before)
		}
		age = time.Hour
		for i := range c.Len() {
			c.Restart(i)
		}
		<-time.After(10 * time.Second)
		if has, want := bounds(c.Leader()), (command.SetTrail{Bytes: 3 << 20, AgeMS: 3_600_000}); has != want {
			t.Errorf("bounds are %+v, want %+v", has, want)
		}
		c.EnsureSame()
	})
}
