package fsm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// everySecond is a schedule of that name whose first slot is at t.
func everySecond(name string, t int64) command.SetSchedule {
	return command.SetSchedule{Schedule: record.Schedule{
		Name: name, EveryMS: 1000, NextRunAt: t, Task: record.NewTask{Type: "mail", Params: []byte("{}"), MaxAttempts: record.DefaultAttempts},
	}}
}

// TestSchedules_AreBounded ensures that there are at most 10,000, and that those
// that are there can still be replaced and removed then.
func TestSchedules_AreBounded(t *testing.T) {
	t.Parallel()
	m := New()
	var commands []command.Command
	for i := range record.SchedulesMax + 1 {
		commands = append(commands, everySecond(fmt.Sprintf("s%05d", (i*7919)%(record.SchedulesMax+1)), int64(1+i)))
	}
	last := commands[record.SchedulesMax].(command.SetSchedule)
	commands = append([]command.Command{command.SetLevel{Level: 1}}, commands...)
	commands = append(commands, everySecond("s00007", 1), command.DeleteSchedule{Name: "s00009"}, last)
	a := mustApplyTo(t, m, testEntry{Index: 1, Commands: commands})
	mustCheck(t, m)
	for i, r := range a.Results {
		refused := i == record.SchedulesMax+1
		if (r.Code != "") != refused || refused && r.Code != CodeInvalidRequest {
			t.Fatalf("result %d: %+v", i, r)
		}
	}
	if got := len(m.Schedules()); got != record.SchedulesMax || m.Schedule("s00009") != nil || m.Schedule(last.Schedule.Name) == nil {
		t.Errorf("%d schedules, want %d", got, record.SchedulesMax)
	}
	if other := restore(t, snapshotOf(t, m)); hashOf(other) != hashOf(m) {
		t.Error("restored, the hash differs")
	}
}

// TestSchedules_NeverChangeInPlace ensures that schedules which were handed out, for instance to a
// snapshot being written, do not change.
func TestSchedules_NeverChangeInPlace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		g := newGenerator(rand.New(rand.NewPCG(seed, 11)).IntN)
		m := newSmall()
		mustApplyTo(t, m, testEntry{Index: 1, Commands: []command.Command{command.SetLevel{Level: 1}, g.setSchedule(m), g.setSchedule(m)}})
		for index := uint64(2); index < 60; index++ {
			all := m.Schedules()
			var copies []record.ScheduleView
			for _, v := range all {
				copies = append(copies, *v)
			}
			g.stamp.T += 700
			mustApplyTo(t, m, testEntry{index, g.stamp, []command.Command{g.sight(m), g.sight(m)}})
			for i, v := range all {
				if diff := cmp.Diff(copies[i], *v); diff != "" {
					t.Fatalf("seed %d, entry %d: a schedule changed (-was +is):\n%s", seed, index, diff)
				}
			}
		}
	}
}

// TestSchedules_EachSlotIsDoneOnce ensures what leaders may rely on: however many
// of them propose the slots that they see, early, late, twice and in any order,
// no slot makes a second task.
func TestSchedules_EachSlotIsDoneOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 12))
		m := New()
		set := everySecond("s", 1000)
		set.Schedule.OverlapAllow = true
		mustApplyTo(t, m, testEntry{Index: 1, Commands: []command.Command{command.SetLevel{Level: 1}, set}})
		var proposed []command.ScheduleRun
		var slots []int64
		stamp := record.Stamp{}
		for index := uint64(2); index < 400; index++ {
			stamp.T += int64(rng.IntN(900))
			v := m.Schedule("s")
			next := command.ScheduleRun{Name: "s", Version: v.Version, Slot: v.NextRunAt, Next: v.NextRunAt + 1000*int64(1+rng.IntN(3))}
			proposed = append(proposed, next)
			item := proposed[rng.IntN(len(proposed))]
			if rng.IntN(2) == 0 {
				item = next
			}
			a := mustApplyTo(t, m, testEntry{index, stamp, []command.Command{command.RunSchedules{Items: []command.ScheduleRun{item, item}}}})
			for range a.Results[0].Submitted {
				slots = append(slots, m.Schedule("s").LastRunAt)
			}
		}
		if len(slots) < 50 || !slices.IsSorted(slots) || len(slices.Compact(slices.Clone(slots))) != len(slots) || m.tasks.Len() != len(slots) {
			t.Fatalf("seed %d: %d tasks of the slots %v", seed, m.tasks.Len(), slots)
		}
	}
}

// TestSchedules_ReplacedDoNotGoBack ensures that a schedule that is set again with
// the same plan by who had not seen its last slot done does not do it again; with
// another plan it is another schedule.
func TestSchedules_ReplacedDoNotGoBack(t *testing.T) {
	t.Parallel()
	m := New()
	set := everySecond("s", 1000)
	run := command.RunSchedules{Items: []command.ScheduleRun{{Name: "s", Version: 1, Slot: 1000, Next: 2000}}}
	mustApplyTo(t, m, testEntry{Index: 1, Commands: []command.Command{command.SetLevel{Level: 1}, set}})
	mustApplyTo(t, m, testEntry{2, record.Stamp{T: 1500}, []command.Command{run, set}})
	if got := m.Schedule("s").NextRunAt; got != 2000 || m.tasks.Len() != 1 {
		t.Errorf("after %d tasks it waits for %d, want 2000", m.tasks.Len(), got)
	}
	set.Schedule.EveryMS = 500
	mustApplyTo(t, m, testEntry{3, record.Stamp{T: 1500}, []command.Command{set}})
	if got := m.Schedule("s").NextRunAt; got != 1000 {
		t.Errorf("with another plan it waits for %d, want 1000", got)
	}
}

// TestSchedules_PlansThatCross ensures that a plan that was put before another one, and is applied
// after it, does no slot again.
func TestSchedules_PlansThatCross(t *testing.T) {
	t.Parallel()
	m := New()
	first, other := everySecond("s", 1000), everySecond("s", 1700)
	other.Schedule.EveryMS = 700
	first.Schedule.OverlapAllow = true
	run := func(version uint64) command.Command {
		return command.RunSchedules{Items: []command.ScheduleRun{{Name: "s", Version: version, Slot: 1000, Next: 2000}}}
	}
	mustApplyTo(t, m, testEntry{Index: 1, Commands: []command.Command{command.SetLevel{Level: 1}, first}})
	mustApplyTo(t, m, testEntry{2, record.Stamp{T: 1000}, []command.Command{run(1)}})
	mustApplyTo(t, m, testEntry{3, record.Stamp{T: 1100}, []command.Command{other}})
	mustApplyTo(t, m, testEntry{4, record.Stamp{T: 1200}, []command.Command{first}})
	mustApplyTo(t, m, testEntry{5, record.Stamp{T: 1300}, []command.Command{run(4)}})
	if v := m.Schedule("s"); m.tasks.Len() != 1 || v.NextRunAt != 2000 || v.Skipped != 0 {
		t.Errorf("%d tasks of slot 1000, want 1; it waits for %d, skipped %d", m.tasks.Len(), v.NextRunAt, v.Skipped)
	}
}

// TestSchedules_MovedBehindTheLast ensures that a slot runs which newer data of its time zone have
// moved to where the last one was: by the clocks of the zone it has not.
func TestSchedules_MovedBehindTheLast(t *testing.T) {
	t.Parallel()
	m := New()
	run := func(slot, next int64, move bool) command.Command {
		return command.RunSchedules{Items: []command.ScheduleRun{{Name: "s", Version: 1, Slot: slot, Next: next, Move: move}}}
	}
	set := everySecond("s", 1000)
	set.Schedule.OverlapAllow = true
	mustApplyTo(t, m, testEntry{Index: 1, Commands: []command.Command{command.SetLevel{Level: 1}, set}})
	mustApplyTo(t, m, testEntry{2, record.Stamp{T: 1500}, []command.Command{run(1000, 2000, false), run(2000, 1000, true), run(1000, 2000, false)}})
	if v := m.Schedule("s"); m.tasks.Len() != 2 || v.NextRunAt != 2000 {
		t.Errorf("%d tasks, want 2; it waits for %d", m.tasks.Len(), v.NextRunAt)
	}
}

// TestRestoreEqualsReplay_Sight restores at every step of logs about schedules
// and actions.
func TestRestoreEqualsReplay_Sight(t *testing.T) {
	t.Parallel()
	for seed := range seeds(4) {
		g := newGenerator(rand.New(rand.NewPCG(seed, 13)).IntN)
		g.theme = themeSight
		m := newSmall()
		log := []testEntry{{Index: 1, Stamp: g.stamp, Commands: []command.Command{command.SetLevel{Level: 1}}}}
		mustApplyTo(t, m, log[0])
		done := 0
		for index := uint64(2); index < 90; index++ {
			g.index = index
			g.moveClocks(m)
			e := testEntry{index, g.stamp, []command.Command{g.submit(), g.sight(m), g.complete(m), g.runSchedules(m)}}
			done += len(mustApplyTo(t, m, e).Results[3].Submitted)
			log = append(log, e)
		}
		if done < 5 {
			t.Errorf("seed %d: only %d slots were done", seed, done)
		}
		r := newReplay(t, log)
		m = newSmall()
		for prefix := range log {
			r.checkRestore(t, m, prefix)
			applyLog(t, m, log[prefix:prefix+1])
		}
	}
}

// TestSchedules_BoundSteps ensures that one command submits at most 10,000 tasks, steps counted, and that what it left
// is still due.
func TestSchedules_BoundSteps(t *testing.T) {
	t.Parallel()
	m := New()
	steps := make([]record.NewStep, record.StepsMax-1)
	for i := range steps {
		steps[i] = record.NewStep{Name: fmt.Sprint("s", i), Task: record.NewTask{Type: "mail", Params: []byte("1")}}
	}
	commands := []command.Command{command.SetLevel{Level: 1}}
	var run command.RunSchedules
	for i := range 12 {
		set := everySecond(fmt.Sprintf("s%02d", i), 1000)
		set.Schedule.Task.Parent = &record.NewParent{Steps: steps}
		commands = append(commands, set)
		run.Items = append(run.Items, command.ScheduleRun{Name: set.Schedule.Name, Version: 1, Slot: 1000, Next: 2000})
	}
	mustApplyTo(t, m, testEntry{Index: 1, Commands: commands})
	before := m.Bytes()
	if per := before / 12 / int64(len(steps)); per < 340 || per > 400 {
		t.Errorf("a step of a schedule counts as %d bytes", per)
	}
	for index, want := range []int{10_000, 12_000, 12_000} {
		mustApplyTo(t, m, testEntry{uint64(2 + index), record.Stamp{T: 1500}, []command.Command{run}})
		if due := m.DueSchedules(1500, 20); m.tasks.Len() != want || len(due) != 12-want/1000 {
			t.Fatalf("entry %d: %d tasks, want %d; %d schedules are due", index, m.tasks.Len(), want, len(due))
		}
	}
	mustCheck(t, m)
	if other := restore(t, snapshotOf(t, m)); hashOf(other) != hashOf(m) {
		t.Error("restored, the hash differs")
	}
}
