package history

import (
	"errors"
	"os"
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
			{Index: 3, Sub: 1, At: 17, Kind: "claimed", TaskID: 1, Worker: "w", Token: 5},
		},
		Final: &Final{Call: 20, Return: 30, Tasks: []Task{{ID: 1, Key: "k", Status: "claimed", Token: 5, Attempts: 1, Worker: "w", Result: `{"a":"<"}`}}},
	}
}

// Reading returns exactly what was written, including every field.
func TestHistory_WriteRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
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

// A file that was truncated, has more data after its end, or is of another version is
// refused.
func TestReadFile_refusesWhatIsNotWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run.json")
	if err := sample().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(b)
	for name, text := range map[string]string{
		"empty": "", "half of it": whole[:len(whole)/2], "all but its end": whole[:len(whole)-1], "two of them": whole + whole,
		"version 2": strings.Replace(whole, `"Version":3`, `"Version":2`, 1), "something else": strings.Replace(whole, formatName, "x", 1), "not one": "{}",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(path); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: got error %v, want ErrFormat", name, err)
		}
	}
}
