package periodic

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/cron"
)

const (
	catchUpDefault = 10 * time.Minute
	catchUpMax     = 12 * time.Hour
	// catchUpSlots bounds how many slots of a schedule are caught up on.
	catchUpSlots = 100
	// keptLonger is added to Config.CatchUp for the time that a task has to be kept.
	keptLonger = 10 * time.Minute
	// waitMax bounds the sleep of Run before it reads the clock again, because the clock may have been set.
	waitMax = time.Minute
	// The pause after a failed submit, doubled each time. The client has already repeated it for Config.Timeout.
	pauseMin = time.Second
	pauseMax = time.Minute
	// The labels of a task.
	labelSchedule = "schedule"
	labelSlot     = "slot"
)

// Schedule says which tasks to submit, and when.
type Schedule struct {
	// Name is part of the tasks' keys, so a new name makes a new schedule: 1 to 64 of A-Z a-z 0-9 _ . -.
	Name string
	// Slots returns the times: Every, Cron, or the program's own function.
	Slots Slots
	// Since is the start of the schedule; earlier slots do not count. Zero: it always existed.
	Since time.Time
	// Task returns the task for a slot. The schedule sets its IdempotencyKey, Unique and two labels, and its RunAt, if
	// it is zero, to the slot and its Delay. If Task returns an error, it is reported and the slot is skipped.
	Task func(slot time.Time) (client.Task, error)
}

// slotMin is the least time between two slots.
const slotMin = time.Second

// Slots returns the first slot after the given time, or the zero time after the last slot. It must return the same
// in every replica, in whole seconds.
type Slots func(after time.Time) time.Time

// Every returns slots at intervals of d, in whole seconds, counted from the beginning of 1970 in UTC: with 24 h they
// are at midnight UTC.
func Every(d time.Duration) (Slots, error) {
	if d < slotMin || d%time.Second != 0 {
		return nil, fmt.Errorf("periodic: every %v, it must be a second or more, in whole seconds", d)
	}
	step := int64(d / time.Second)
	return func(after time.Time) time.Time {
		n := after.Unix() / step
		if after.Unix()%step < 0 {
			n--
		}
		return time.Unix((n+1)*step, 0).UTC()
	}, nil
}

// Cron returns the slots of an expression with five fields, or @hourly, @daily and the like, in the time zone, an
// IANA name; "" is UTC. When clocks change, an expression with certain hours still runs once a day, like a schedule
// of the cluster.
func Cron(expression, timezone string) (Slots, error) {
	times, err := cron.Plan{Cron: expression, Timezone: timezone}.Read(nil)
	if err != nil {
		return nil, fmt.Errorf("periodic: %w", err)
	}
	return func(after time.Time) time.Time {
		next, ok := times.Next(after.UnixMilli())
		if !ok {
			return time.Time{}
		}
		return time.UnixMilli(next).UTC()
	}, nil
}

// Config says how to run the schedules. The zero value is valid.
type Config struct {
	// CatchUp is the age up to which a slot is still submitted when Run begins or the cluster answers again. 0: 10
	// minutes; up to 12 h.
	CatchUp time.Duration
	// OnError is called for each failed try of a slot and, with ErrMissed, when a slot is skipped. It must be safe
	// for concurrent use. It may be nil.
	OnError func(schedule string, slot time.Time, err error)
}

// ErrMissed is reported for a slot that became older than Config.CatchUp before it was submitted.
var ErrMissed = errors.New("the slot was missed")

// Submitter is the part of a client that Periodic needs. *client.Client implements it.
type Submitter interface {
	SubmitTask(ctx context.Context, task client.Task) (client.Submitted, error)
}

// Periodic submits the tasks of schedules.
type Periodic struct {
	c         Submitter
	cfg       Config
	schedules []Schedule
}

// scheduleName restricts names so that they fit into a label.
var scheduleName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New checks the configuration and the schedules. It makes no call.
func New(c Submitter, cfg Config, schedules ...Schedule) (*Periodic, error) {
	if cfg.CatchUp == 0 {
		cfg.CatchUp = catchUpDefault
	}
	if cfg.CatchUp < 0 || cfg.CatchUp > catchUpMax {
		return nil, fmt.Errorf("periodic: catch up is %v, it must be up to %v, or 0 for %v", cfg.CatchUp, catchUpMax, catchUpDefault)
	}
	if cfg.OnError == nil {
		cfg.OnError = func(string, time.Time, error) {}
	}
	names := map[string]bool{}
	for i, s := range schedules {
		switch {
		case !scheduleName.MatchString(s.Name):
			return nil, fmt.Errorf("periodic: schedule %d of %d has the name %q, it must be 1 to 64 of A-Z a-z 0-9 _ . -", i+1, len(schedules), s.Name)
		case names[s.Name]:
			return nil, fmt.Errorf("periodic: there are two schedules with the name %s", s.Name)
		case s.Slots == nil || s.Task == nil:
			return nil, fmt.Errorf("periodic: schedule %s must have Slots and Task", s.Name)
		}
		names[s.Name] = true
	}
	return &Periodic{c: c, cfg: cfg, schedules: schedules}, nil
}

// Run submits a task for each slot until ctx ends or no schedule has further slots. It waits for submits under way.
// The error names the schedules whose Slots do not return later whole seconds.
func (p *Periodic) Run(ctx context.Context) error {
	errs := make([]error, len(p.schedules))
	var all sync.WaitGroup
	for i := range p.schedules {
		all.Go(func() { errs[i] = p.run(ctx, &p.schedules[i]) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// run submits the slots of one schedule, one after the other.
func (p *Periodic) run(ctx context.Context, s *Schedule) error {
	slot, err := p.first(s, time.Now())
	for ; err == nil && !slot.IsZero(); slot, err = s.next(slot) {
		if !waitUntil(ctx, slot) {
			return nil
		}
		p.submit(ctx, s, slot)
	}
	return err
}

// first returns the first slot to submit, going back up to CatchUp and catchUpSlots.
func (p *Periodic) first(s *Schedule, now time.Time) (time.Time, error) {
	var latest []time.Time // a ring
	from := now.Add(-p.cfg.CatchUp)
	if begins := s.Since.Add(-time.Nanosecond); begins.After(from) {
		from = begins
	}
	slot, err := s.next(from)
	n := 0
	for ; err == nil && !slot.IsZero() && !slot.After(now); slot, err = s.next(slot) {
		if n < catchUpSlots {
			latest = append(latest, slot)
		} else {
			latest[n%catchUpSlots] = slot
		}
		n++
	}
	if n == 0 || err != nil {
		return slot, err
	}
	return latest[max(n-catchUpSlots, 0)%catchUpSlots], nil
}

// next calls Slots and checks the result.
func (s *Schedule) next(after time.Time) (time.Time, error) {
	slot := s.Slots(after)
	if !slot.IsZero() && (!slot.After(after) || slot.Nanosecond() != 0) {
		return slot, fmt.Errorf("periodic: schedule %s: after %v comes %v, it must be a later whole second", s.Name, after, slot)
	}
	return slot, nil
}

// submit submits the task of a slot, and repeats that until it succeeds, is refused for good, or is too late.
func (p *Periodic) submit(ctx context.Context, s *Schedule, slot time.Time) {
	tell := func(err error) { p.cfg.OnError(s.Name, slot, err) }
	if p.isMissed(slot) {
		tell(ErrMissed)
		return
	}
	task, err := p.task(s, slot)
	if err != nil {
		tell(err)
		return
	}
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		_, err := p.c.SubmitTask(ctx, task)
		if err == nil || ctx.Err() != nil {
			return
		}
		tell(err)
		if errors.Is(err, client.ErrInvalidTask) || errors.Is(err, client.ErrTooLarge) {
			return
		}
		if !waitUntil(ctx, time.Now().Add(pause)) {
			return
		}
		if p.isMissed(slot) {
			tell(ErrMissed)
			return
		}
	}
}

func (p *Periodic) isMissed(slot time.Time) bool { return time.Since(slot) > p.cfg.CatchUp }

// task returns the task to submit for a slot.
func (p *Periodic) task(s *Schedule, slot time.Time) (client.Task, error) {
	t, err := s.Task(slot)
	if err != nil {
		return t, err
	}
	if least := p.cfg.CatchUp + keptLonger; t.Retention > 0 && t.Retention < least || t.Retention == client.KeepNone {
		return t, fmt.Errorf("%w: it must be kept for %v or more after its end, so that its slot is known", client.ErrInvalidTask, least)
	}
	at := slot.UTC().Format(time.RFC3339)
	labels := map[string]string{labelSchedule: s.Name, labelSlot: at}
	for name, value := range t.Labels {
		if labels[name] == "" {
			labels[name] = value
		}
	}
	t.IdempotencyKey, t.Unique, t.Labels = "periodic/"+s.Name+"/"+at, "", labels
	if t.RunAt.IsZero() {
		t.RunAt, t.Delay = slot.Add(max(t.Delay, 0)), 0
	}
	return t, nil
}

// SlotOf returns the schedule and the slot that a task was submitted for. ok is false for a task that no schedule
// submitted.
func SlotOf(t *client.Task) (schedule string, slot time.Time, ok bool) {
	slot, err := time.Parse(time.RFC3339, t.Labels[labelSlot])
	schedule = t.Labels[labelSchedule]
	return schedule, slot, err == nil && schedule != ""
}

// waitUntil waits until the clock reaches at. It returns false if ctx ended.
func waitUntil(ctx context.Context, at time.Time) bool {
	for {
		d := time.Until(at)
		if d <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(min(d, waitMax))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
