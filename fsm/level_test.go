package fsm

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

func TestLevelOf_KnowsEveryCommand(t *testing.T) {
	t.Parallel()
	for _, c := range firstCommands() {
		if got := command.LevelOf(c); got != 1 {
			t.Errorf("level of %v with the fields of level 1 is %d", command.KindOf(c), got)
		}
	}
	for _, c := range lifeCommands() {
		if got := command.LevelOf(c); got != record.LevelLife {
			t.Errorf("level of %v with every field is %d, want %d", command.KindOf(c), got, record.LevelLife)
		}
	}
	for _, c := range sightCommands() {
		if got := command.LevelOf(c); got != record.LevelSight {
			t.Errorf("level of %v with every field is %d, want %d", command.KindOf(c), got, record.LevelSight)
		}
	}
	for _, c := range stepsCommands() {
		if got := command.LevelOf(c); got != record.LevelSteps {
			t.Errorf("level of %v with every field is %d, want %d", command.KindOf(c), got, record.LevelSteps)
		}
	}
	for _, c := range zonesCommands() {
		if got := command.LevelOf(c); got != record.LevelZones {
			t.Errorf("level of %v with every field is %d, want %d", command.KindOf(c), got, record.LevelZones)
		}
	}
	for field, run := range oneFieldEach(command.ScheduleRun{NextWall: 1, Move: true}, "NextWall", "Move") {
		wantLevel(t, field, command.RunSchedules{Items: []command.ScheduleRun{run}}, record.LevelZones)
	}
	wantLevel(t, "NextWall", command.SetSchedule{Schedule: record.Schedule{NextWall: 1}}, record.LevelZones)
	for _, c := range actsCommands() {
		if got := command.LevelOf(c); got != record.LevelActs {
			t.Errorf("level of %v with every field is %d, want %d", command.KindOf(c), got, record.LevelActs)
		}
	}
	wantLevel(t, "every field", fullRelease(), record.LevelAnswers)
}

// TestLevelOf_EveryNewFieldNeedsItsLevel ensures that no field of a later level
// slips into the log of a cluster below it, alone or as part of another command.
func TestLevelOf_EveryNewFieldNeedsItsLevel(t *testing.T) {
	t.Parallel()
	full := lifeCommands()[0].(command.Submit).Tasks[0]
	tasks := oneFieldEach(full, "RunAt", "DelayMS", "ExpiresAt", "Backoff", "RetentionMS", "Labels", "Group", "UniqueActive")
	for field, task := range tasks {
		wantLevel(t, field, command.Submit{Tasks: []record.NewTask{{}, task}}, record.LevelLife)
	}
	for field, c := range oneFieldEach(command.ClaimNext{SortBy: command.SortRandom, MoreAttempts: 1}, "SortBy", "MoreAttempts") {
		wantLevel(t, field+" of any type", c, record.LevelActs)
		c.Types = []string{"mail"}
		wantLevel(t, field, c, record.LevelLife)
	}
	for field, c := range oneFieldEach(command.Complete{Submit: []record.NewTask{{}}, Claim: &command.ClaimNext{}}, "Submit", "Claim") {
		wantLevel(t, field, c, record.LevelLife)
	}
	for field, c := range oneFieldEach(command.Fail{RetryIn: true, RetryInMS: 1, Permanent: true}, "RetryIn", "RetryInMS", "Permanent") {
		wantLevel(t, field, c, record.LevelLife)
	}
	wantLevel(t, "Progress", command.Extend{Progress: []byte("1")}, record.LevelLife)
	wantLevel(t, "DelayMS", command.Release{DelayMS: 1}, record.LevelLife)
	wantLevel(t, "a batch", command.Batch{Ops: []command.Command{command.Delete{ID: 1}}}, record.LevelLife)
	wantLevel(t, "an op's field", command.Batch{Ops: []command.Command{command.Delete{ID: 1}, command.Release{DelayMS: 1}}}, record.LevelLife)
	traced := record.NewTask{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	wantLevel(t, "traceparent", command.Submit{Tasks: []record.NewTask{{}, traced}}, record.LevelSight)
	wantLevel(t, "traceparent", command.Complete{Submit: []record.NewTask{{}, traced}}, record.LevelSight)
	wantLevel(t, "an op's traceparent", command.Batch{Ops: []command.Command{command.Delete{ID: 1}, command.Submit{Tasks: []record.NewTask{traced}}}}, record.LevelSight)
	parent := record.NewTask{Parent: &record.NewParent{Steps: []record.NewStep{{}}}}
	wantLevel(t, "steps", command.Submit{Tasks: []record.NewTask{{}, parent}}, record.LevelSteps)
	wantLevel(t, "a follow-up with steps", command.Complete{Submit: []record.NewTask{{}, parent}}, record.LevelSteps)
	wantLevel(t, "an op with steps", command.Batch{Ops: []command.Command{command.Delete{ID: 1}, command.Submit{Tasks: []record.NewTask{parent}}}}, record.LevelSteps)
	wantLevel(t, "a name", command.SetType{By: "deploy"}, record.LevelActs)
	wantLevel(t, "a name", command.SetSchedule{By: "deploy"}, record.LevelActs)
	wantLevel(t, "a name", command.DeleteSchedule{By: "deploy"}, record.LevelActs)
	wantLevel(t, "a name", command.SetLevel{Level: record.LevelActs - 1, By: "deploy"}, record.LevelActs)
	wantLevel(t, "a name and the level that knows it", command.SetLevel{Level: record.LevelActs, By: "deploy"}, 1)
	wantLevel(t, "defaults", command.SetLevel{Level: record.LevelActs - 1, Defaults: FirstDefaults(record.LevelActs)}, record.LevelActs)
	wantLevel(t, "defaults and the level that knows them", command.SetLevel{Level: record.LevelActs, Defaults: FirstDefaults(record.LevelActs)}, 1)
	wantLevel(t, "a group of errors", command.Act{Filter: record.Filter{ErrorGroup: 1}}, record.LevelActs)
	wantLevel(t, "nonvoter", command.SetNode{Node: record.NodeRecord{Nonvoter: true}}, record.LevelActs)
	wantLevel(t, "created_at", command.ClaimNext{SortBy: command.SortCreatedAt, Ascending: true}, 1)
}

// The defaults of a SetLevel are a new cluster's: one that has a level keeps what it has.
func TestSetLevel_defaults(t *testing.T) {
	t.Parallel()
	first := FirstDefaults(record.LevelActs)
	for level, want := range map[uint32]record.Defaults{0: first, 1: {}, record.LevelActs - 1: {}} {
		s := &story{t: t, m: New(), Stamp: record.Stamp{U: 1, T: storyEpoch}}
		if level > 0 {
			s.do(command.SetLevel{Level: level})
		}
		s.do(command.SetLevel{Level: record.LevelActs, Defaults: first})
		if diff := cmp.Diff(want, s.m.Defaults()); diff != "" {
			t.Errorf("raised from level %d: -want +got\n%s", level, diff)
		}
		s.do(command.SetLevel{Level: record.LevelActs, Defaults: record.Defaults{LeaseMS: 1000}})
		if diff := cmp.Diff(want, s.m.Defaults()); diff != "" {
			t.Errorf("raised from level %d, then to where it is: -want +got\n%s", level, diff)
		}
	}
}

func wantLevel(t *testing.T, what string, c command.Command, want uint32) {
	t.Helper()
	if got := command.LevelOf(c); got != want {
		t.Errorf("%T with %s needs level %d, want %d", c, what, got, want)
	}
}

// oneFieldEach returns, by name of the field, values that have that one of full's
// fields and no other.
func oneFieldEach[T any](full T, fields ...string) map[string]T {
	all := map[string]T{}
	for _, name := range fields {
		var one T
		reflect.ValueOf(&one).Elem().FieldByName(name).Set(reflect.ValueOf(full).FieldByName(name))
		all[name] = one
	}
	return all
}
