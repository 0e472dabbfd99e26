package periodic_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/client/periodic"
)

// queue records submitted tasks by key, and when they came.
type queue struct {
	mu    sync.Mutex
	tasks map[string]client.Task
	order []string // "SLOT at TIME" of new ones
	calls int
	fault func() error // nil: no fault
}

func (q *queue) SubmitTask(_ context.Context, t client.Task) (client.Submitted, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls++
	if q.fault != nil {
		if err := q.fault(); err != nil {
			return client.Submitted{}, err
		}
	}
	if _, ok := q.tasks[t.IdempotencyKey]; ok {
		return client.Submitted{}, nil
	}
	if q.tasks == nil {
		q.tasks = map[string]client.Task{}
	}
	q.tasks[t.IdempotencyKey] = t
	q.order = append(q.order, t.Labels["slot"][11:]+" at "+time.Now().UTC().Format("15:04:05"))
	return client.Submitted{Created: true}, nil
}

func every(t *testing.T, d time.Duration) periodic.Slots {
	t.Helper()
	slots, err := periodic.Every(d)
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

// report is a schedule whose task has its own label.
func report(slots periodic.Slots) periodic.Schedule {
	return periodic.Schedule{Name: "report", Slots: slots, Task: func(slot time.Time) (client.Task, error) {
		return client.Task{TaskType: "report", Payload: []byte("1"), Unique: client.UniqueActive, Labels: map[string]string{"team": "a", "slot": "mine"}}, nil
	}}
}

// run runs replicas for d of the bubble's time, which begins at midnight.
func run(t *testing.T, d time.Duration, replicas ...*periodic.Periodic) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range replicas {
		all.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func replica(t *testing.T, q periodic.Submitter, cfg periodic.Config, s ...periodic.Schedule) *periodic.Periodic {
	t.Helper()
	p, err := periodic.New(q, cfg, s...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// With three replicas, one of which begins late, each slot is one task, at its time.
func TestRun_onceForEachSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		s := report(every(t, time.Hour))
		run(t, 150*time.Minute, replica(t, q, periodic.Config{}, s), replica(t, q, periodic.Config{}, s))
		run(t, 60*time.Minute, replica(t, q, periodic.Config{CatchUp: time.Hour}, s)) // from 02:30
		want := "[00:00:00Z at 00:00:00 01:00:00Z at 01:00:00 02:00:00Z at 02:00:00 03:00:00Z at 03:00:00]"
		if got := fmt.Sprint(q.order); got != want || q.calls != 2*3+2 {
			t.Errorf("%s in %d calls, want %s", got, q.calls, want)
		}
		task := q.tasks["periodic/report/2000-01-01T02:00:00Z"]
		slot := time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)
		if name, at, ok := periodic.SlotOf(&task); !ok || name != "report" || !at.Equal(slot) {
			t.Errorf("its slot is %v of %s, %v", at, name, ok)
		}
		if !task.RunAt.Equal(slot) || task.Unique != "" || !maps.Equal(task.Labels, map[string]string{"team": "a", "schedule": "report", "slot": "2000-01-01T02:00:00Z"}) {
			t.Errorf("the task is %+v", task)
		}
	})
}

// A task's delay counts from its slot.
func TestRun_delay(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]string{5 * time.Minute: "01:05:00", client.NoDelay: "01:00:00"} {
		synctest.Test(t, func(t *testing.T) {
			q, s := &queue{}, report(every(t, time.Hour))
			s.Since, s.Task = time.Now().Add(time.Minute), func(time.Time) (client.Task, error) {
				return client.Task{TaskType: "report", Payload: []byte("1"), Delay: delay}, nil
			}
			run(t, 61*time.Minute, replica(t, q, periodic.Config{}, s))
			if len(q.tasks) != 1 {
				t.Fatalf("delay %v: %d tasks", delay, len(q.tasks))
			}
			for _, task := range q.tasks {
				if task.Delay != 0 || task.RunAt.UTC().Format("15:04:05") != want {
					t.Errorf("delay %v: the task is for %v, delayed by %v, want %s", delay, task.RunAt, task.Delay, want)
				}
			}
		})
	}
}

// A schedule has no slots before Since, whether that is in the past or the future.
func TestRun_since(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		since time.Duration // after midnight; the replica begins at 03:10
		want  string
	}{
		"not said": {want: "[02:30:00Z at 03:10:00 03:00:00Z at 03:10:00 03:30:00Z at 03:30:00 04:00:00Z at 04:00:00]"},
		"a slot":   {since: 3 * time.Hour, want: "[03:00:00Z at 03:10:00 03:30:00Z at 03:30:00 04:00:00Z at 04:00:00]"},
		"now":      {since: 190 * time.Minute, want: "[03:30:00Z at 03:30:00 04:00:00Z at 04:00:00]"},
		"later":    {since: 211 * time.Minute, want: "[04:00:00Z at 04:00:00]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			midnight := time.Now()
			<-time.After(190 * time.Minute)
			q := &queue{}
			s := report(every(t, 30*time.Minute))
			if test.since > 0 {
				s.Since = midnight.Add(test.since)
			}
			run(t, time.Hour, replica(t, q, periodic.Config{CatchUp: 50 * time.Minute}, s))
			if got := fmt.Sprint(q.order); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		})
	}
}

// Missed slots are caught up on as far back as CatchUp, at most the latest 100.
func TestRun_catchesUp(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		catchUp, every time.Duration
		first          string
		count          int
	}{
		"by time":    {time.Hour, 10 * time.Minute, "05:10:00Z at 06:05:00", 6},
		"by default": {0, 4 * time.Minute, "05:56:00Z at 06:05:00", 3},
		"by number":  {time.Hour + 30*time.Second, time.Second, "06:03:21Z at 06:05:00", 100},
		"none":       {time.Minute, time.Hour, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				<-time.After(6*time.Hour + 5*time.Minute)
				q := &queue{}
				run(t, time.Millisecond, replica(t, q, periodic.Config{CatchUp: test.catchUp}, report(every(t, test.every))))
				if len(q.order) != test.count || test.count > 0 && q.order[0] != test.first {
					t.Errorf("%d, %v, want %d from %s", len(q.order), q.order, test.count, test.first)
				}
			})
		})
	}
}

// A slot is tried until the cluster answers, or it is too old.
func TestRun_outage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(25 * time.Minute)
		q := &queue{fault: func() error {
			if time.Now().Before(up) {
				return client.ErrNoLeader
			}
			return nil
		}}
		told := map[error]int{}
		cfg := periodic.Config{OnError: func(name string, slot time.Time, err error) {
			if name != "report" || slot.IsZero() {
				t.Errorf("told of %s, %v", name, slot)
			}
			told[err]++
		}}
		run(t, 31*time.Minute, replica(t, q, cfg, report(every(t, 5*time.Minute))))
		want := "[00:15:00Z at 00:25:00 00:20:00Z at 00:25:00 00:25:00Z at 00:25:00 00:30:00Z at 00:30:00]"
		if got := fmt.Sprint(q.order); !strings.HasPrefix(got, "[00:15:00Z at 00:25:") && !strings.HasPrefix(got, "[00:20:00Z at 00:25:") || len(q.order) < 3 {
			t.Errorf("%s, want about %s", got, want)
		}
		if told[client.ErrNoLeader] < 5 || told[periodic.ErrMissed] < 2 || told[client.ErrNoLeader] > 60 {
			t.Errorf("told %v", told)
		}
	})
}

// A task that can never be submitted is reported once, and the next slot follows.
func TestRun_refused(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		fault error
		task  client.Task
		err   error
		want  string
	}{
		"by the cluster": {fault: client.ErrTooLarge, want: "too large"},
		"by Task":        {err: broken, want: "broken"},
		"kept too short": {task: client.Task{Retention: time.Minute}, want: "invalid task: it must be kept for 20m0s or more after its end, so that its slot is known"},
		"not kept":       {task: client.Task{Retention: client.KeepNone}, want: "invalid task: it must be kept for 20m0s or more after its end, so that its slot is known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var told []string
				cfg := periodic.Config{OnError: func(_ string, slot time.Time, err error) { told = append(told, slot.Format("15:04 ")+err.Error()) }}
				q := &queue{fault: func() error { return test.fault }}
				s := report(every(t, time.Hour))
				s.Task = func(time.Time) (client.Task, error) { return test.task, test.err }
				run(t, 61*time.Minute, replica(t, q, cfg, s))
				if got := strings.Join(told, "; "); got != "00:00 "+test.want+"; 01:00 "+test.want {
					t.Errorf("told %s", got)
				}
			})
		})
	}
}

// Slots that end, or do not increase, end Run.
func TestRun_slotsOfOnesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Hour)
		once := report(func(after time.Time) time.Time {
			if after.Before(at) {
				return at
			}
			return time.Time{}
		})
		q := &queue{}
		if err := replica(t, q, periodic.Config{}, once).Run(t.Context()); err != nil || len(q.order) != 1 {
			t.Errorf("%v, %v", q.order, err)
		}
		for _, slots := range []periodic.Slots{
			func(after time.Time) time.Time { return after },
			func(after time.Time) time.Time { return after.Add(time.Millisecond) },
		} {
			err := replica(t, q, periodic.Config{}, report(slots)).Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "it must be a later whole second") {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	s := report(every(t, time.Hour))
	for want, err := range map[string]error{
		"catch up is -1ns, it must be up to 12h0m0s, or 0 for 10m0s":                  newError(periodic.Config{CatchUp: -1}),
		"catch up is 13h0m0s, it must be up to 12h0m0s":                               newError(periodic.Config{CatchUp: 13 * time.Hour}),
		`schedule 2 of 2 has the name "a b", it must be 1 to 64 of A-Z a-z 0-9 _ . -`: newError(periodic.Config{}, s, periodic.Schedule{Name: "a b"}),
		"there are two schedules with the name report":                                newError(periodic.Config{}, s, s),
		"schedule x must have Slots and Task":                                         newError(periodic.Config{}, periodic.Schedule{Name: "x"}),
		"every 1.5s, it must be a second or more, in whole seconds":                   func() error { _, err := periodic.Every(1500 * time.Millisecond); return err }(),
		"every 0s, it must be a second or more, in whole seconds":                     func() error { _, err := periodic.Every(0); return err }(),
		"bad cron": func() error { _, err := periodic.Cron("* * *", ""); return err }(),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "periodic: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func newError(cfg periodic.Config, s ...periodic.Schedule) error {
	_, err := periodic.New(&queue{}, cfg, s...)
	return err
}

func TestSlots(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		slot, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return slot
	}
	prague, err := periodic.Cron("30 2 * * *", "Europe/Prague")
	if err != nil {
		t.Fatal(err)
	}
	never, err := periodic.Cron("0 0 31 2 *", "")
	if err != nil {
		t.Fatal(err)
	}
	day := every(t, 24*time.Hour)
	for _, test := range []struct {
		slots       periodic.Slots
		after, want string
	}{
		{day, "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{day, "2025-12-31T23:59:59.999Z", "2026-01-01T00:00:00Z"},
		{day, "1969-12-30T12:00:00Z", "1969-12-31T00:00:00Z"},
		{prague, "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z"},
		{prague, "2026-07-01T00:30:00Z", "2026-07-02T00:30:00Z"},
	} {
		if got := test.slots(at(test.after)); !got.Equal(at(test.want)) {
			t.Errorf("after %s comes %v, want %s", test.after, got, test.want)
		}
	}
	if got := never(at("2026-01-01T00:00:00Z")); !got.IsZero() {
		t.Errorf("February 31st is at %v", got)
	}
	if _, _, ok := periodic.SlotOf(&client.Task{}); ok {
		t.Error("a task without labels has a slot")
	}
}

// With a real server: two replicas, one of which is a restart of the other.
func TestRun_server(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	now := time.Now().Truncate(time.Minute)
	slots := func(after time.Time) time.Time { // the last three minutes
		if next := after.Truncate(time.Minute).Add(time.Minute); !next.After(now) {
			return next
		}
		return time.Time{}
	}
	cfg := periodic.Config{CatchUp: 3 * time.Minute, OnError: func(_ string, _ time.Time, err error) { t.Error(err) }}
	run(t, time.Minute, replica(t, s.Client(), cfg, report(slots)), replica(t, s.Client(), cfg, report(slots)))
	tasks := s.Tasks("report")
	if len(tasks) < 2 || len(tasks) > 3 {
		t.Errorf("%d tasks", len(tasks))
	}
	for _, task := range tasks {
		if name, slot, ok := periodic.SlotOf(task); !ok || name != "report" || !task.RunAt.Equal(slot) {
			t.Errorf("a task of %s for %v, at %v", name, slot, task.RunAt)
		}
	}
}
