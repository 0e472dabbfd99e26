package record

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Each optional field that a task is submitted with stands in each place of newtask.go: it is
// written and read in commands and in records, and a task keeps it. The format describes it.
func TestNewTask_optionsAreKept(t *testing.T) {
	t.Parallel()
	format, err := os.ReadFile("../fsm.proto")
	if err != nil {
		t.Fatal(err)
	}
	_, message, _ := strings.Cut(string(format), "\nmessage NewTask {\n")
	message, _, _ = strings.Cut(message, "\n}\n")
	inner := regexp.MustCompile("([a-z])([A-Z])")
	for field := range reflect.TypeFor[Options]().Fields() {
		if field.Name == "Parent" || field.Name == "Step" || field.Name == "Origin" || field.Name == "Progress" || strings.HasPrefix(field.Name, "Signal") && field.Name != "SignalMS" { // not submitted as such
			continue
		}
		if name := strings.ToLower(inner.ReplaceAllString(field.Name, "${1}_${2}")); !strings.Contains(message, " "+name+" = ") {
			t.Errorf("%s: fsm.proto has no %s in NewTask", field.Name, name)
		}
		n := NewTask{Type: "mail", Key: "k"}
		to := reflect.ValueOf(&n).Elem().FieldByName(field.Name)
		if !to.IsValid() || to.Type() != field.Type {
			t.Errorf("%s: NewTask has no such field", field.Name)
			continue
		}
		to.Set(valueOf(t, field.Type))

		written := To(nil)
		written.NewTasks(1, &[]NewTask{n}, new(string))
		var back []NewTask
		read := From(written.Out, nil)
		if read.NewTasks(1, &back, new(string)); read.End() != nil || len(back) != 1 || !reflect.DeepEqual(back[0], n) {
			t.Errorf("%s: a command comes back as %+v, %v; want %+v", field.Name, back, read.Err, n)
		}

		task := Task{ID: 1, Type: "mail", Status: StatusPending}
		task.SetOptions(n.Options())
		if task.Options == nil || !reflect.DeepEqual(reflect.ValueOf(*task.Options).FieldByName(field.Name).Interface(), to.Interface()) {
			t.Errorf("%s: the task keeps %+v", field.Name, task.Options)
			continue
		}
		record := From(AppendTask(nil, &task), nil)
		var got Task
		if ReadTask(&record, &got); record.End() != nil || !reflect.DeepEqual(got, task) {
			t.Errorf("%s: a record comes back as %+v, %v", field.Name, got.Options, record.Err)
		}
		if plain := (Options{}); field.Type.Kind() == reflect.String && task.Options.textBytes() == plain.textBytes() {
			t.Errorf("%s: its memory is not counted", field.Name)
		}
	}
}

// valueOf returns a value of a field that is not its default.
func valueOf(t *testing.T, of reflect.Type) reflect.Value {
	t.Helper()
	switch v := reflect.New(of).Elem(); of.Kind() {
	case reflect.String:
		v.SetString("text")
		return v
	case reflect.Bool:
		v.SetBool(true)
		return v
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
		return v
	}
	for _, v := range []any{&Backoff{InitialMS: 1, MaxMS: 2, Factor: 2 * Million}, []Label{{"name", "value"}}, []byte("{}")} {
		if reflect.TypeOf(v) == of {
			return reflect.ValueOf(v)
		}
	}
	t.Fatalf("no value of %v: add one here", of)
	return reflect.Value{}
}
