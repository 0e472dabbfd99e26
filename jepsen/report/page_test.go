package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/check"
	"github.com/claimq/claimq/jepsen/history"
)

// The page shows the faults, the state of the nodes, the outcomes of calls, and the times
// without acknowledged changes.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	const sec = int64(time.Second)
	submit := func(id uint64, at int64, outcome history.Outcome, code string) history.Op {
		return history.Op{Process: int(id), Kind: history.Submit, Key: code, TaskID: id, Call: at, Return: at + sec/10, Outcome: outcome, Code: code}
	}
	h := &history.History{
		Run: &history.Run{Nodes: 1, Faults: []string{"kill-one"}},
		Ops: []history.Op{submit(1, 0, history.OK, ""), submit(2, 3*sec, history.OK, ""), submit(3, 4*sec, history.Failed, "no_leader"), submit(4, 5*sec, history.Unknown, "no_answer")},
		Events: []history.Event{
			{At: sec, Kind: history.Injected, Fault: "kill-one", Text: "kill-one"}, {At: 2 * sec, Kind: history.Healed, Fault: "kill-one", Text: "kill-one healed"},
		},
		Samples: []history.Sample{{At: 0, Node: "n1", Up: true, Leads: true, Term: 7}, {At: sec, Node: "n1"}, {At: 2 * sec, Node: "n1", Up: true}},
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := WriteFile(path, h, check.Judge(h)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"1 nodes, seed 0: kill-one", "the run fails", "kill-one, 1.0s to 2.0s", "n1 leads, 0.0s to 1.0s", ">7</text>", "n1 down, 1.0s to 2.0s", "n1 up, 2.0s to 5.1s",
		"no acknowledged change for 3s", "3s: 1 ok", "4s: 1 fail", "5s: 1 unknown", "fail no_leader", "unknown no_answer", "2.00s</td><td>kill-one healed", "equality",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
