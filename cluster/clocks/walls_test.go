package clocks

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/lease"
)

// The alarm comes once when clocks are certainly more than a second apart, and its end once
// when they are close again.
func TestWalls_alarm(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	c := NewWalls(hclog.New(&hclog.LoggerOptions{Output: &printed}))
	wall := time.Hour
	at := time.Duration(0)
	read := func(nodeID string, ahead, took time.Duration) {
		c.Note(raft.ServerID("uuid-"+nodeID), Read(nodeID, int64(wall+at+took/2+ahead), at, took))
	}
	three := []raft.ServerID{"uuid-n1", "uuid-n2", "uuid-n3"}
	for _, step := range []struct {
		name       string
		n1, n2, n3 time.Duration // ahead; the majority shows the middle one
		took       time.Duration // to ask n2 and n3
		want       string        // in the log, "" = nothing
	}{
		{"equal", 0, 0, 0, 0, ""},
		{"a little", 0, 900 * time.Millisecond, 0, 0, ""},
		{"one ahead", 0, 1100 * time.Millisecond, 0, 0, "[ERROR]"},
		{"still", 0, 5 * time.Second, 0, 0, ""},
		{"less, but not near", 0, 600 * time.Millisecond, 0, 0, ""},
		{"near again", 0, 400 * time.Millisecond, 0, 0, "[INFO]"},
		{"one behind", 0, 0, -1100 * time.Millisecond, 0, "[ERROR]"},
		{"near again", 0, 0, 0, 0, "[INFO]"},
		{"one ahead, one behind", 0, 600 * time.Millisecond, -600 * time.Millisecond, 0, "[ERROR]"},
		{"near again", 0, 0, 0, 0, "[INFO]"},
		{"perhaps, by a slow answer", 0, 1100 * time.Millisecond, 0, time.Second, ""},
		{"for sure, by a slow answer", 0, 1600 * time.Millisecond, 0, time.Second, "[ERROR]"},
		{"near again", 0, 0, 0, 0, "[INFO]"},
		{"the leader's own is the one", -1100 * time.Millisecond, 0, 0, 0, "[ERROR]"},
	} {
		printed.Reset()
		at += time.Second
		read("n1", step.n1, 0)
		read("n2", step.n2, step.took)
		read("n3", step.n3, step.took)
		majority, ok := c.Majority(at, three)
		if want := lease.Wall(wall); !ok || majority != want {
			t.Fatalf("%s: a majority shows %d, want %d", step.name, majority, want)
		}
		c.Judge(majority, step.n1)
		if got := printed.String(); step.want == "" && got != "" || !strings.Contains(got, step.want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: logged %q, want %q", step.name, got, step.want)
		}
		if got := c.Ahead(majority); got["n1"] != step.n1 || got["n2"] != step.n2 || got["n3"] != step.n3 {
			t.Errorf("%s: read as %v", step.name, got)
		}
	}
	// Nodes that are not heard from any more do not count.
	at += readingMax + time.Second
	read("n3", 0, 0)
	if _, ok := c.Majority(at, three); ok {
		t.Error("one of three is a majority")
	}
	if got := c.Ahead(0); len(got) != 1 {
		t.Errorf("after nodes had gone: %v", got)
	}
}

// It is logged once that the leader's own clock is not followed, and once that it is again;
// and so is each jump of it.
func TestWalls_refused(t *testing.T) {
	t.Parallel()
	var printed bytes.Buffer
	c := NewWalls(hclog.New(&hclog.LoggerOptions{Output: &printed}))
	at, own := time.Duration(0), time.Duration(0)
	for _, step := range []struct {
		name string
		own  time.Duration // ahead
		want []string      // in each logged line
	}{
		{"right", 0, nil},
		{"near", 900 * time.Millisecond, nil},
		{"far", time.Hour, []string{"has jumped", "are apart", "is not followed"}},
		{"still far", time.Hour, nil},
		{"farther", 2 * time.Hour, []string{"has jumped"}},
		{"right again", 0, []string{"has jumped", "agree again", "is followed again"}},
		{"far behind", -time.Hour, []string{"has jumped", "are apart", "is not followed"}},
	} {
		printed.Reset()
		at += time.Second
		own = step.own
		c.NoteOwn("uuid-n1", Read("n1", int64(time.Hour+at+own), at, 0))
		for _, id := range []string{"n2", "n3"} {
			c.Note(raft.ServerID("uuid-"+id), Read(id, int64(time.Hour+at), at, 0))
		}
		majority, _ := c.Majority(at, []raft.ServerID{"uuid-n1", "uuid-n2", "uuid-n3"})
		c.Judge(majority, own)
		lines := strings.Split(strings.TrimSuffix(printed.String(), "\n"), "\n")
		if printed.Len() == 0 {
			lines = nil
		}
		if len(lines) != len(step.want) {
			t.Errorf("%s: logged %q, want %d lines", step.name, printed.String(), len(step.want))
			continue
		}
		for i, want := range step.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: logged %q, want %q", step.name, lines[i], want)
			}
		}
	}
}

// Two clocks that are wrong one after the other are not a majority, even if one's reading is
// still the latest. Clocks of a majority that step together are followed once they have been
// read again.
func TestWalls_wrongOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := NewWalls(hclog.NewNullLogger())
	three := []raft.ServerID{"uuid-n1", "uuid-n2", "uuid-n3"}
	far := 200 * time.Hour
	at := time.Hour
	for _, step := range []struct {
		name string
		read map[string]time.Duration // how far the clocks that are read are ahead
		want time.Duration            // the majority's
	}{
		{"right", map[string]time.Duration{"n1": 0, "n2": 0, "n3": 0}, 0},
		{"one is far", map[string]time.Duration{"n1": 0, "n2": far, "n3": 0}, 0},
		{"it is set right, the leader's is far", map[string]time.Duration{"n1": far}, 0},
		{"the other is not heard from", map[string]time.Duration{"n1": far, "n3": 0}, 0},
		{"it is heard from", map[string]time.Duration{"n1": far, "n2": 0, "n3": 0}, 0},
		{"right again", map[string]time.Duration{"n1": 0, "n2": 0, "n3": 0}, 0},
		{"two step together", map[string]time.Duration{"n1": far, "n2": far, "n3": 0}, 0},
		{"and are read again", map[string]time.Duration{"n1": far, "n2": far, "n3": 0}, far},
		{"the third, too", map[string]time.Duration{"n1": far, "n2": far, "n3": far}, far},
		{"all step back", map[string]time.Duration{"n1": 0, "n2": 0, "n3": 0}, far},
		{"and one is read again", map[string]time.Duration{"n1": 0}, far},
		{"and another", map[string]time.Duration{"n2": 0}, 0},
	} {
		at += time.Second
		for nodeID, ahead := range step.read {
			c.Note(raft.ServerID("uuid-"+nodeID), Read(nodeID, int64(at+ahead), at, 0))
		}
		majority, ok := c.Majority(at, three)
		if want := lease.Wall(step.want); !ok || majority != want {
			t.Fatalf("%s: a majority shows %v, want %v", step.name, time.Duration(majority), time.Duration(want))
		}
	}
}

// A step that was seen, and then no majority heard of any more, says nothing of a later one.
func TestWalls_stepSeenLongAgo(t *testing.T) {
	t.Parallel()
	c := NewWalls(hclog.NewNullLogger())
	three := []raft.ServerID{"uuid-n1", "uuid-n2", "uuid-n3"}
	far := 200 * time.Hour
	note := func(at, ahead time.Duration, nodeIDs ...string) {
		for _, nodeID := range nodeIDs {
			c.Note(raft.ServerID("uuid-"+nodeID), Read(nodeID, int64(at+ahead), at, 0))
		}
	}
	at := time.Hour
	note(at, 0, "n1", "n2", "n3")
	c.Majority(at, three)
	at += time.Second
	note(at, far, "n1", "n2")
	c.Majority(at, three)
	at += readingMax + time.Second
	if _, ok := c.Majority(at, three); ok {
		t.Fatal("there is a majority without readings")
	}
	note(at, far, "n1") // and is set right
	at += time.Second
	note(at, far, "n2")
	if majority, ok := c.Majority(at, three); !ok || majority != 0 {
		t.Errorf("a majority shows %v, want the right time", time.Duration(majority))
	}
}
