package fsm

import (
	"reflect"
	"testing"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/record"
)

// Each kind of the table has one full value here, which is decoded as what it is.
func TestCommands_EachIsDecodedAsItself(t *testing.T) {
	t.Parallel()
	seen := map[command.Kind]bool{}
	for _, c := range fullCommands() {
		seen[command.KindOf(c)] = true
		_, got, err := command.DecodeEntry(command.AppendEntry(nil, record.Stamp{}, c))
		if err != nil || len(got) != 1 || reflect.TypeOf(got[0]) != reflect.TypeOf(c) {
			t.Errorf("%T is decoded as %T: %v", c, got, err)
		}
	}
	if len(seen) != len(knownKinds()) || len(fullCommands()) != len(seen) {
		t.Errorf("%d full values are of %d kinds, of %d", len(fullCommands()), len(seen), len(knownKinds()))
	}
}

// Each kind of the table has a rule, or applying it panics.
func TestApply_HasARuleForEachKind(t *testing.T) {
	t.Parallel()
	for _, c := range fullCommands() {
		if _, err := New().apply(1, fullStamp, []command.Command{c}); err != nil {
			t.Errorf("%T: %v", c, err)
		}
	}
}

// AboutOf returns all ids of tasks, new tasks, types
// and workers in a command's fields.
func TestAboutOf_NamesWhatTheCommandHas(t *testing.T) {
	t.Parallel()
	for _, c := range fullCommands() {
		about := command.AboutOf(c)
		v := reflect.ValueOf(c)
		if id := v.FieldByName("ID"); id.IsValid() && id.Kind() == reflect.Uint64 && about.ID != id.Uint() {
			t.Errorf("%T is about task %d, want %d", c, about.ID, id.Uint())
		}
		if w := v.FieldByName("WorkerID"); w.IsValid() && about.WorkerID != w.String() && about.Claimer != w.String() {
			t.Errorf("%T does not name its worker", c)
		}
		if about.Known && reflect.DeepEqual(about, command.About{Known: true, Changes: about.Changes}) {
			t.Errorf("%T says that all is known that it touches, and names nothing", c)
		}
		if !about.Known && !reflect.DeepEqual(about, command.About{Changes: about.Changes}) {
			t.Errorf("%T names a part of what it touches: %+v", c, about)
		}
	}
	for _, test := range []struct {
		c    command.Command
		want command.About
	}{
		{command.ClaimNext{WorkerID: "w", Types: []string{"mail"}, Limit: 3}, command.About{Known: true, Claims: true, Claimer: "w", Types: []string{"mail"}, Changes: 3}},
		{
			command.Complete{Hold: command.Hold{ID: 1, WorkerID: "w"}, Submit: []record.NewTask{{Type: "mail"}}, Claim: &command.ClaimNext{WorkerID: "v", Types: []string{"sms"}, Limit: 2}},
			command.About{Known: true, ID: 1, WorkerID: "w", Submits: []record.NewTask{{Type: "mail"}}, Claims: true, Claimer: "v", Types: []string{"sms"}, Changes: 4},
		},
		{command.SetType{Type: "mail"}, command.About{Known: true, Type: "mail"}},
		{command.SetShare{Type: "mail", ShareKey: "ann"}, command.About{Known: true, Type: "mail"}},
		{
			command.SetSchedule{Schedule: record.Schedule{Name: "night", Task: record.NewTask{Type: "mail"}}},
			command.About{Known: true, Schedule: "night", Submits: []record.NewTask{{Type: "mail"}}},
		},
		{command.DeleteSchedule{Name: "night"}, command.About{Known: true, Schedule: "night"}},
		{command.Batch{Ops: []command.Command{command.Delete{ID: 1}, command.Cancel{ID: 2}}}, command.About{Known: true, Ops: []command.Command{command.Delete{ID: 1}, command.Cancel{ID: 2}}, Changes: 2}},
		{command.Act{Action: command.ActionDelete, IDs: []uint64{1, 2, 3}}, command.About{Changes: 3}},
	} {
		if got := command.AboutOf(test.c); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%T is about %+v, want %+v", test.c, got, test.want)
		}
	}
}
