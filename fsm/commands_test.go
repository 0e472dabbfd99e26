package fsm

import (
	"reflect"
	"testing"

	"github.com/claimq/claimq/fsm/record"
)

// Each row is whole, and of the kind that it stands at; and no command is of two rows.
func TestCommands_EachRowIsWhole(t *testing.T) {
	t.Parallel()
	rows := map[reflect.Type]kind{}
	for _, k := range knownKinds() {
		row := k.row()
		if row.of.kind() != k {
			t.Errorf("row %d is of a command of kind %d", k, row.of.kind())
		}
		if row.name == "" || row.level == 0 || row.level > record.FeatureLevel || row.lane >= LaneCount {
			t.Errorf("the row of %T is not whole: %+v", row.of, row)
		}
		if row.op && k >= kindTick {
			t.Errorf("%T is an op of a batch, and changes no task", row.of)
		}
		if !reflect.ValueOf(row.of).IsZero() {
			t.Errorf("the row of %T has a value that is not zero", row.of)
		}
		if other, twice := rows[reflect.TypeOf(row.of)]; twice {
			t.Errorf("%T is in rows %d and %d", row.of, other, k)
		}
		rows[reflect.TypeOf(row.of)] = k
	}
	for _, c := range fullCommands() {
		if rows[reflect.TypeOf(c)] != c.kind() {
			t.Errorf("%T is in no row", c)
		}
	}
	if n := len(fullCommands()); n != len(rows) {
		t.Errorf("%d commands have a full value, of %d", n, len(rows))
	}
}

// The zero value of a row decodes commands of its own type.
func TestCommands_EachIsDecodedAsItself(t *testing.T) {
	t.Parallel()
	for _, c := range fullCommands() {
		got, err := decodeBody(c.kind(), c.appendBody(nil), nil)
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(c) {
			t.Errorf("%T is decoded as %T: %v", c, got, err)
		}
	}
}

// What a command says that it is about are its own fields: every id of a task, every
// new task, every type and every worker that it has.
func TestAboutOf_NamesWhatTheCommandHas(t *testing.T) {
	t.Parallel()
	for _, c := range fullCommands() {
		about := AboutOf(c)
		v := reflect.ValueOf(c)
		if id := v.FieldByName("ID"); id.IsValid() && id.Kind() == reflect.Uint64 && about.ID != id.Uint() {
			t.Errorf("%T is about task %d, want %d", c, about.ID, id.Uint())
		}
		if w := v.FieldByName("WorkerID"); w.IsValid() && about.WorkerID != w.String() && about.Claimer != w.String() {
			t.Errorf("%T does not name its worker", c)
		}
		if about.Known && reflect.DeepEqual(about, About{Known: true, Changes: about.Changes}) {
			t.Errorf("%T says that all is known that it touches, and names nothing", c)
		}
		if !about.Known && !reflect.DeepEqual(about, About{Changes: about.Changes}) {
			t.Errorf("%T names a part of what it touches: %+v", c, about)
		}
	}
	for _, test := range []struct {
		c    Command
		want About
	}{
		{ClaimNext{WorkerID: "w", Types: []string{"mail"}, Limit: 3}, About{Known: true, Claims: true, Claimer: "w", Types: []string{"mail"}, Changes: 3}},
		{
			Complete{Hold: Hold{ID: 1, WorkerID: "w"}, Submit: []record.NewTask{{Type: "mail"}}, Claim: &ClaimNext{WorkerID: "v", Types: []string{"sms"}, Limit: 2}},
			About{Known: true, ID: 1, WorkerID: "w", Submits: []record.NewTask{{Type: "mail"}}, Claims: true, Claimer: "v", Types: []string{"sms"}, Changes: 4},
		},
		{SetType{Type: "mail"}, About{Known: true, Type: "mail"}},
		{
			SetSchedule{Schedule: record.Schedule{Name: "night", Task: record.NewTask{Type: "mail"}}},
			About{Known: true, Schedule: "night", Submits: []record.NewTask{{Type: "mail"}}},
		},
		{DeleteSchedule{Name: "night"}, About{Known: true, Schedule: "night"}},
		{Batch{Ops: []Command{Delete{ID: 1}, Cancel{ID: 2}}}, About{Known: true, Ops: []Command{Delete{ID: 1}, Cancel{ID: 2}}, Changes: 2}},
		{Act{Action: ActionDelete, IDs: []uint64{1, 2, 3}}, About{Changes: 3}},
	} {
		if got := AboutOf(test.c); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%T is about %+v, want %+v", test.c, got, test.want)
		}
	}
}
