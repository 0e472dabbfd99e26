package operations

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/claimq/claimq/jepsen/check"
)

// A reader that misses an event of the restored cluster, or sees one twice, is found; one that
// sees the rest is not.
func TestRun_judgeReaders(t *testing.T) {
	t.Parallel()
	trail := []told{{"1", "a"}, {"2", "b"}, {"8", "c"}, {"9", "d"}}
	for _, c := range []struct {
		events []told
		found  bool
	}{
		{trail[2:], false}, {trail[3:], true}, {trail[1:], true}, {nil, true},
	} {
		r := &run{cfg: Config{Out: io.Discard}, report: &Report{Part: check.Part{Name: "operations"}}}
		one := &reader{seen: counted([]told{{"1", "a"}, {"2", "b"}, {"3", "lost"}}), read: func(*run, context.Context, string) ([]told, error) { return c.events, nil }}
		if err := r.judgeReader(t.Context(), one, trail); err != nil || (r.report.ViolationCount > 0) != c.found {
			t.Errorf("%v: %v, %s", c.events, err, fmt.Sprint(r.report.Violations))
		}
	}
}

// An incomplete last line of an audit file is ignored, and places that do not increase are
// found.
func TestAudited(t *testing.T) {
	t.Parallel()
	line := func(index, sub int) string {
		return fmt.Sprintf(`{"index":%d,"sub":%d,"event":"submitted","task_id":7}`+"\n", index, sub)
	}
	for _, c := range []struct{ text, last, back string }{
		{line(3, 0) + line(3, 1) + line(9, 0), "9.0", ""},
		{line(3, 0) + line(9, 0)[:20], "3.0", ""},
		{line(3, 1) + line(3, 1), "3.1", "3.1 behind 3.1"},
		{line(9, 0) + line(3, 1), "3.1", "3.1 behind 9.0"},
	} {
		file := filepath.Join(t.TempDir(), "audit")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		events, err := audited(file)
		if err != nil || len(events) == 0 || events[len(events)-1].place != c.last || goesBack(events) != c.back {
			t.Errorf("%q: %v, %v, %q", c.text, events, err, goesBack(events))
		}
	}
}
