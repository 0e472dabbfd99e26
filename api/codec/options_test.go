package codec

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
)

// Each field of a task to submit is read, and each option that is submitted is shown again.
func TestOptions_areTheFieldsOfATask(t *testing.T) {
	t.Parallel()
	read := slices.Concat([]string{"task_type", "params", "payload", "priority", "max_attempts", "lease_ms"}, ofParents)
	for _, o := range options {
		read = append(read, o.name)
	}
	submitted, shown := namesOf(reflect.TypeFor[wire.NewTask]()), namesOf(reflect.TypeFor[wire.Task]())
	slices.Sort(read)
	if diff := cmp.Diff(slices.Sorted(slices.Values(submitted)), read); diff != "" {
		t.Errorf("the fields of a task (-wire.NewTask +read):\n%s", diff)
	}
	for _, o := range options {
		if o.name != "delay_ms" && !slices.Contains(shown, o.name) { // a delay becomes run_at
			t.Errorf("%s is not in wire.Task", o.name)
		}
	}
}

// A task shows each option that it was submitted with.
func TestOptions_areShown(t *testing.T) {
	t.Parallel()
	var limits Limits
	limits.SetDefaults()
	for _, o := range options {
		shown := o.name == "delay_ms" // it becomes run_at
		for _, value := range given[o.name] {
			if submit, bad := DecodeSubmit(fmt.Appendf(nil, `{"params":1,%q:%s}`, o.name, value), &limits); bad == nil {
				n := submit.Tasks[0]
				task := fsm.Task{ID: 1, Type: n.Type, Key: n.Key, RunAt: n.RunAt}
				task.SetOptions(n.Options())
				shown = shown || strings.Contains(string(AppendTask(nil, &task, View{Params: true})), fmt.Sprintf(",%q:", o.name))
			}
		}
		if !shown {
			t.Errorf("no task shows its %s", o.name)
		}
	}
}

// The description of the API has the fields of a task that Go programs send and read, of each kind of task those that
// the server takes, and no others.
func TestDescription_hasTheFieldsOfATask(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]yaml.Node
			}
		}
	}
	if err := yaml.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"NewTask": namesOf(reflect.TypeFor[wire.NewTask]()), "Task": namesOf(reflect.TypeFor[wire.Task]()),
		"NewStep": stepNames(), "ScheduledTask": scheduledNames(), "ScheduledStep": scheduledStepNames(),
	} {
		var is []string
		for field := range described.Components.Schemas[name].Properties {
			is = append(is, field)
		}
		slices.Sort(is)
		slices.Sort(want)
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("the fields of %s (-want +openapi.yaml):\n%s", name, diff)
		}
	}
}
