package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

// The alarm comes once, when clocks are more than a second apart for sure, and
// its end once, when they are near again.
func TestWallClocks_alarm(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	c := newWallClocks(hclog.New(&hclog.LoggerOptions{Output: &printed}))
	wall := time.Hour.Nanoseconds()
	at := time.Duration(0)
	read := func(nodeID string, ahead, took time.Duration) {
		c.note(nodeID, wall+int64(ahead+took/2), wall, at, took)
	}
	for _, step := range []struct {
		name   string
		n2, n3 time.Duration // ahead of the leader
		took   time.Duration // of asking
		want   string        // what is logged, "" = nothing
	}{
		{"equal", 0, 0, 0, ""},
		{"a little", 900 * time.Millisecond, 0, 0, ""},
		{"one ahead", 1100 * time.Millisecond, 0, 0, "[ERROR]"},
		{"still", 5 * time.Second, 0, 0, ""},
		{"less, but not near", 600 * time.Millisecond, 0, 0, ""},
		{"near again", 400 * time.Millisecond, 0, 0, "[INFO]"},
		{"one behind", 0, -1100 * time.Millisecond, 0, "[ERROR]"},
		{"near again", 0, 0, 0, "[INFO]"},
		{"one ahead, one behind", 600 * time.Millisecond, -600 * time.Millisecond, 0, "[ERROR]"},
		{"near again", 0, 0, 0, "[INFO]"},
		{"perhaps, by a slow answer", 1100 * time.Millisecond, 0, time.Second, ""},
		{"for sure, by a slow answer", 1600 * time.Millisecond, 0, time.Second, "[ERROR]"},
	} {
		printed.Reset()
		at += time.Second
		read("n2", step.n2, step.took)
		read("n3", step.n3, step.took)
		c.judge(at)
		if got := printed.String(); step.want == "" && got != "" || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: logged %q, want %q", step.name, got, step.want)
		}
		if got := c.ahead(); got["n2"] != step.n2 || got["n3"] != step.n3 {
			t.Errorf("%s: read as %v", step.name, got)
		}
	}
	// Who is not heard from any more does not count.
	printed.Reset()
	at += wallReadingMax + time.Second
	read("n3", 0, 0)
	c.judge(at)
	if got := c.ahead(); len(got) != 1 || !strings.Contains(printed.String(), "[INFO]") {
		t.Errorf("after a node had gone: %v, logged %q", got, printed.String())
	}
}
