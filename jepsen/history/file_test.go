package history

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() *History {
	return &History{
		Seed: 7,
		Ops: []Op{
			{Process: 1, Kind: Submit, Call: 1, Return: 2, Outcome: OK, TaskID: 1, Key: "k", Created: true, MaxAttempts: 3},
			{Process: 2, Kind: Claim, Call: 3, Return: 9, Outcome: Unknown, Code: "timeout", RequestID: "r1", Worker: "w", LeaseMS: 500},
			{
				Process: 2, Kind: Claim, Call: 10, Return: 11, Outcome: OK, TaskID: 1, Token: 5, RequestID: "r1", Worker: "w",
				Repeated: true, Index: 12, Seen: &Task{ID: 1, Key: "k", Status: "claimed", Token: 5, Attempts: 1, Worker: "w"},
			},
		},
		Run:     &Run{Nodes: 3, Faults: []string{"kill-one"}, Seconds: 60, Drained: true},
		Events:  []Event{{At: 4, Text: "n1 killed", Kind: Injected, Fault: "kill-one"}},
		Samples: []Sample{{At: 5, Node: "n1"}, {At: 5, Node: "n2", PID: 17, Up: true, Leads: true, Term: 2, Index: 9, Bytes: 1, Files: 2, Goroutines: 3}},
		Dumps:   []Dump{{Node: "n1", Index: 9, Tasks: 1, Hash: "ab", Events: 2, TrailHash: "cd"}, {Node: "n2", TrailDiffers: "x"}},
		Trail: []Told{
			{Index: 3, At: 17, Kind: "submitted", TaskID: 1, Message: "schedule tick"},
			{Index: 3, Sub: 1, At: 17, Kind: "claimed", TaskID: 1, Worker: "w", Token: 5, Attempt: 1},
		},
		Schedule: &Schedule{Name: "tick", EveryMS: 1000, Index: 2, FirstMS: 16},
		Final:    &Final{Call: 20, Return: 30, Tasks: []Task{{ID: 1, Key: "k", Status: "claimed", Token: 5, Attempts: 1, Worker: "w", Result: `{"a":"<"}`}}},
	}
}

// What is written is read back the same, to the last field.
func TestHistory_WriteRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.jsonl")
	want := sample()
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the history read back differs (-want +got):\n%s", diff)
	}
	if got.UnknownCount() != 1 {
		t.Errorf("UnknownCount: got %d, want 1", got.UnknownCount())
	}
}

// A file that was cut anywhere, or is of another version, is refused.
func TestRead_refusesWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := sample().Write(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	for drop := range lines {
		kept := strings.Join(append(append([]string{}, lines[:drop]...), lines[drop+1:]...), "")
		if _, err := Read(strings.NewReader(kept)); !errors.Is(err, ErrFormat) {
			t.Errorf("without line %d: got error %v, want ErrFormat", drop+1, err)
		}
	}
	other := strings.Replace(b.String(), `"version":2`, `"version":1`, 1)
	if _, err := Read(strings.NewReader(other)); !errors.Is(err, ErrFormat) {
		t.Errorf("version 1: got error %v, want ErrFormat", err)
	}
	if _, err := Read(strings.NewReader(b.String() + b.String())); !errors.Is(err, ErrFormat) {
		t.Errorf("two histories in one file: got error %v, want ErrFormat", err)
	}
}
