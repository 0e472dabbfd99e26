package term

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

// Layers do not depend on the order of the steps or the shape of their dependencies.
func TestLayers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps []wire.Step
		want  [][]int
	}{
		"none":      {nil, nil},
		"one":       {[]wire.Step{{Step: "a"}}, [][]int{{0}}},
		"backwards": {[]wire.Step{{Step: "c", DependsOn: []string{"b"}}, {Step: "b", DependsOn: []string{"a"}}, {Step: "a"}}, [][]int{{2}, {1}, {0}}},
		"diamond": {[]wire.Step{
			{Step: "a"}, {Step: "b", DependsOn: []string{"a"}}, {Step: "d", DependsOn: []string{"a", "b", "c"}}, {Step: "c", DependsOn: []string{"a"}}, {Step: "e"},
		}, [][]int{{0, 4}, {1, 3}, {2}}},
		"unknown name": {[]wire.Step{{Step: "a", DependsOn: []string{"z"}}}, [][]int{{0}}},
	} {
		if diff := cmp.Diff(test.want, layers(test.steps)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// A drawing of many steps with long names stays within 80 columns.
func TestDrawSteps_width(t *testing.T) {
	t.Parallel()
	var names []string
	task := &wire.Task{ID: 1_000, TaskType: "report", Status: "running"}
	for i := range 100 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("x", 3*(i%40)), i)
		task.Steps = append(task.Steps, wire.Step{Step: name, ID: uint64(1_001 + i), Status: "completed", Error: strings.Repeat("é", i)})
		names = append(names, name)
	}
	task.Steps = append(task.Steps, wire.Step{Step: strings.Repeat("é", 128), ID: 1_101, Status: "blocked", DependsOn: names})
	task.Steps[7].Status = "failed"
	task.Steps[8].Status = "cancelled"
	var stdout bytes.Buffer
	if err := (&App{Stdout: &stdout}).DrawSteps(task); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(stdout.String(), "\n")
	for _, line := range lines[1:] {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if want := 2 + 100 + 1 + 1 + 1; len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
}

func TestNamesWithin(t *testing.T) {
	t.Parallel()
	names := []string{"left", "middle", "right", "top"}
	for width, want := range map[int]string{
		3: "l… and 3 more", 14: "le… and 3 more", 16: "left and 3 more", 20: "left and 3 more", 23: "left, middle and 2 more", 24: "left, middle, right, top", 80: "left, middle, right, top",
	} {
		if got := namesWithin(names, width); got != want {
			t.Errorf("within %d: %q, want %q", width, got, want)
		}
	}
}
