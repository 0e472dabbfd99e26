package diary

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Written lines can be read, except a last line that a SIGKILL cut off; a line that is
// broken elsewhere is an error.
func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "diary")
	if lines, err := Read(path, "w1"); lines != nil || err != nil {
		t.Errorf("of one that never wrote: %v, %v", lines, err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{{At: 1, To: 2, Event: Begin, TaskID: "1", Token: 7, Attempt: 1, Deadline: 9}, {At: 3, Event: Return, TaskID: "1", Token: 7, Text: "lost"}}
	for _, l := range want {
		w.Write(l)
	}
	if _, err := w.file.WriteString(`{"at":5,"e":"he`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); err == nil {
		t.Error("it was created twice")
	}
	for i := range want {
		want[i].Worker = "w1"
	}
	lines, err := Read(path, "w1")
	if diff := cmp.Diff(want, lines); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\n{}\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, "w1"); err == nil {
		t.Error("a broken line in the middle is no error")
	}
}

// At is never earlier than the given time.
func TestAt(t *testing.T) {
	t.Parallel()
	before := Now()
	if at := At(time.Now()); at < before || at > Now() {
		t.Errorf("%d is not between %d and %d", at, before, Now())
	}
}

// The same claim is always handled the same way, and all outcomes come up.
func TestParams_Draw(t *testing.T) {
	t.Parallel()
	seen := map[Outcome]bool{}
	for token := range int64(1000) {
		p := Params{Seed: 1, Fails: token%2 == 0}
		a := p.Draw(token)
		if a != p.Draw(token) || a.Leases < leasesMin || a.Leases > leasesMax || a.Look < lookMin || a.Look >= lookMax || p.Fails && a.Outcome == Completes {
			t.Fatalf("token %d: %+v", token, a)
		}
		seen[a.Outcome] = true
	}
	if len(seen) != 5 {
		t.Errorf("outcomes: %v", seen)
	}
}
