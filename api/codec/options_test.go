package codec

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/wire"
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
	if want := slices.Sorted(slices.Values(submitted)); !slices.Equal(read, want) {
		t.Errorf("the table reads %v, the fields of wire.NewTask are %v", read, want)
	}
	for _, o := range options {
		if o.name != "delay_ms" && !slices.Contains(shown, o.name) { // a delay becomes run_at
			t.Errorf("%s is not in wire.Task", o.name)
		}
	}
}

// The description of the API has the fields of a task that Go programs send and read, and no
// others.
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
	for name, of := range map[string]reflect.Type{"NewTask": reflect.TypeFor[wire.NewTask](), "Task": reflect.TypeFor[wire.Task]()} {
		var is []string
		for field := range described.Components.Schemas[name].Properties {
			is = append(is, field)
		}
		want := namesOf(of)
		slices.Sort(is)
		slices.Sort(want)
		if !slices.Equal(is, want) {
			t.Errorf("openapi.yaml gives %s the fields %v, want those of package wire, %v", name, is, want)
		}
	}
}
