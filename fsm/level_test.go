package fsm

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLevelOf_KnowsEveryCommand(t *testing.T) {
	t.Parallel()
	for _, c := range firstCommands() {
		if got := LevelOf(c); got != 1 {
			t.Errorf("level of %v with the fields of level 1 is %d", c.kind(), got)
		}
	}
	for _, c := range lifeCommands() {
		if got := LevelOf(c); got != levelLife {
			t.Errorf("level of %v with every field is %d, want %d", c.kind(), got, levelLife)
		}
	}
	for _, c := range sightCommands() {
		if got := LevelOf(c); got != levelSight {
			t.Errorf("level of %v with every field is %d, want %d", c.kind(), got, levelSight)
		}
	}
	for _, c := range stepsCommands() {
		if got := LevelOf(c); got != levelSteps {
			t.Errorf("level of %v with every field is %d, want %d", c.kind(), got, levelSteps)
		}
	}
	for _, c := range actsCommands() {
		if got := LevelOf(c); got != levelActs {
			t.Errorf("level of %v with every field is %d, want %d", c.kind(), got, levelActs)
		}
	}
}

// TestLevelOf_EveryNewFieldNeedsItsLevel ensures that no field of a later level
// slips into the log of a cluster below it, alone or as part of another command.
func TestLevelOf_EveryNewFieldNeedsItsLevel(t *testing.T) {
	t.Parallel()
	full := lifeCommands()[0].(Submit).Tasks[0]
	tasks := oneFieldEach(full, "RunAt", "DelayMS", "ExpiresAt", "Backoff", "RetentionMS", "Labels", "Group", "UniqueActive")
	for field, task := range tasks {
		wantLevel(t, field, Submit{Tasks: []NewTask{{}, task}}, levelLife)
	}
	for field, c := range oneFieldEach(ClaimNext{SortBy: SortRandom, MoreAttempts: 1}, "SortBy", "MoreAttempts") {
		wantLevel(t, field+" of any type", c, levelActs)
		c.Types = []string{"mail"}
		wantLevel(t, field, c, levelLife)
	}
	for field, c := range oneFieldEach(Complete{Submit: []NewTask{{}}, Claim: &ClaimNext{}}, "Submit", "Claim") {
		wantLevel(t, field, c, levelLife)
	}
	for field, c := range oneFieldEach(Fail{RetryIn: true, RetryInMS: 1, Permanent: true}, "RetryIn", "RetryInMS", "Permanent") {
		wantLevel(t, field, c, levelLife)
	}
	wantLevel(t, "Progress", Extend{Progress: []byte("1")}, levelLife)
	wantLevel(t, "DelayMS", Release{DelayMS: 1}, levelLife)
	wantLevel(t, "a batch", Batch{Ops: []Command{Delete{ID: 1}}}, levelLife)
	wantLevel(t, "an op's field", Batch{Ops: []Command{Delete{ID: 1}, Release{DelayMS: 1}}}, levelLife)
	traced := NewTask{Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	wantLevel(t, "traceparent", Submit{Tasks: []NewTask{{}, traced}}, levelSight)
	wantLevel(t, "traceparent", Complete{Submit: []NewTask{{}, traced}}, levelSight)
	wantLevel(t, "an op's traceparent", Batch{Ops: []Command{Delete{ID: 1}, Submit{Tasks: []NewTask{traced}}}}, levelSight)
	parent := NewTask{Parent: &NewParent{Steps: []NewStep{{}}}}
	wantLevel(t, "steps", Submit{Tasks: []NewTask{{}, parent}}, levelSteps)
	wantLevel(t, "a follow-up with steps", Complete{Submit: []NewTask{{}, parent}}, levelSteps)
	wantLevel(t, "an op with steps", Batch{Ops: []Command{Delete{ID: 1}, Submit{Tasks: []NewTask{parent}}}}, levelSteps)
	wantLevel(t, "a name", SetType{By: "deploy"}, levelActs)
	wantLevel(t, "a name", SetSchedule{By: "deploy"}, levelActs)
	wantLevel(t, "a name", DeleteSchedule{By: "deploy"}, levelActs)
	wantLevel(t, "a name", SetLevel{Level: levelActs - 1, By: "deploy"}, levelActs)
	wantLevel(t, "a name and the level that knows it", SetLevel{Level: levelActs, By: "deploy"}, 1)
	wantLevel(t, "defaults", SetLevel{Level: levelActs - 1, Defaults: FirstDefaults(levelActs)}, levelActs)
	wantLevel(t, "defaults and the level that knows them", SetLevel{Level: levelActs, Defaults: FirstDefaults(levelActs)}, 1)
	wantLevel(t, "a group of errors", Act{Filter: Filter{ErrorGroup: 1}}, levelActs)
	wantLevel(t, "nonvoter", SetNode{Node: NodeRecord{Nonvoter: true}}, levelActs)
	wantLevel(t, "created_at", ClaimNext{SortBy: SortCreatedAt, Ascending: true}, 1)
}

// The defaults of a SetLevel are a new cluster's: one that has a level keeps what it has.
func TestSetLevel_defaults(t *testing.T) {
	t.Parallel()
	first := FirstDefaults(levelActs)
	for level, want := range map[uint32]Defaults{0: first, 1: {}, levelActs - 1: {}} {
		s := &story{t: t, m: New(), Stamp: Stamp{U: 1, T: storyEpoch}}
		if level > 0 {
			s.do(SetLevel{Level: level})
		}
		s.do(SetLevel{Level: levelActs, Defaults: first})
		if diff := cmp.Diff(want, s.m.Defaults()); diff != "" {
			t.Errorf("raised from level %d: -want +got\n%s", level, diff)
		}
		s.do(SetLevel{Level: levelActs, Defaults: Defaults{LeaseMS: 1000}})
		if diff := cmp.Diff(want, s.m.Defaults()); diff != "" {
			t.Errorf("raised from level %d, then to where it is: -want +got\n%s", level, diff)
		}
	}
}

func wantLevel(t *testing.T, what string, c Command, want uint32) {
	t.Helper()
	if got := LevelOf(c); got != want {
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
