package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/wire"
)

var updateGolden = flag.Bool("update", false, "write the golden files again")

// aView returns the view of a busy cluster, with rates since the previous one.
func aView(t *testing.T, options ...func(*Look)) *View {
	t.Helper()
	var m Model
	m.Add(lookAt(0, "n2", working(0)))
	return m.Add(lookAt(time.Second, "n2", append([]func(*Look){working(1234)}, options...)...))
}

// working gives a look the answers of three busy nodes after done tasks.
func working(done float64) func(*Look) {
	return func(l *Look) {
		l.Cluster.Nodes[0].AppliedIndex = 97
		for i, id := range []string{"n1", "n2", "n3"} {
			l.Metrics[id] = Metrics{
				At: l.At, NodeID: id, Leads: id == "n2", Started: 1, OldestPendingMS: 93_000, StateBytes: 117 << 20, StateLimitBytes: 4 << 30,
				DiskFreeBytes: 80 << 30, DiskSizeBytes: 100 << 30, ProcessMemoryBytes: int64(200+i) << 20,
				Tasks:    map[string]int64{"pending": 1264, "claimed": 64, "scheduled": 3, "blocked": 0, "running": 1, "failed": 17, "completed": 1_234_567, "cancelled": 0},
				Counters: Counters{Submitted: done, Claimed: done - done/100, Completed: done - done/50, Failed: done / 400, Expired: 0},
			}
		}
		limit, rate := int32(1), 2.5
		l.Types = &Types{At: l.At, Rows: []wire.Type{
			{TaskType: "img.resize", TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": 1200, "claimed": 63, "completed": 1_200_000}, OldestPendingAgeMS: 93_000, SubmittedPerS: 1180.2, CompletedPerS: 1170}},
			{TaskType: "mail", TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": 62, "failed": 17, "scheduled": 3}, OldestPendingAgeMS: 900, SubmittedPerS: 12.34, CompletedPerS: 9, FailedPerS: 1}},
			{TaskType: "report:weekly", TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": 1, "claimed": 1}, OldestPendingAgeMS: 3 * 24 * 3_600_000, SubmittedPerS: 0.016667}, TypeSettings: wire.TypeSettings{MaxClaimed: &limit, RateLimit: &rate}},
			{TaskType: "sms", TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": 1}, OldestPendingAgeMS: 3_725_000}, TypeSettings: wire.TypeSettings{Paused: true}},
		}}
		last := l.At.Add(-350 * time.Millisecond)
		l.Workers = &Workers{At: l.At, Rows: []wire.Worker{
			{WorkerID: "idle"},
			{WorkerID: "resizer-1", Claimed: 32, TaskIDs: []uint64{101, 102, 103}, LastSeenAt: &last},
			{WorkerID: "resizer-2", Claimed: 31, TaskIDs: []uint64{104, 105}, LastSeenAt: &last},
			{WorkerID: "w-report", Claimed: 1, TaskIDs: []uint64{7}, LastSeenAt: &last},
		}}
	}
}

// many gives the look more types and workers than any screen has rows.
func many(l *Look) {
	l.Types.Rows, l.Workers.Rows = nil, nil
	for i := range 400 {
		l.Types.Rows = append(l.Types.Rows, wire.Type{TaskType: fmt.Sprintf("type-%03d", i), TypeTallies: wire.TypeTallies{Counts: map[string]int64{"pending": int64(i)}}})
		l.Workers.Rows = append(l.Workers.Rows, wire.Worker{WorkerID: fmt.Sprintf("worker-%03d", i), Claimed: i})
	}
}

// hostile gives the look names that no claimq server would allow.
func hostile(l *Look) {
	l.Types.Rows[0].TaskType = "\x1b[2J\x1b]0;owned\x07\r\nmail"
	l.Types.Rows[1].TaskType = strings.Repeat("\u202e\u4f60\u0301", 50)
	l.Workers.Rows[1].WorkerID = "w\x9b31m\x00\u00a0"
	l.Cluster.Nodes[0].Problem = "it says \x1b[31mred"
	l.Cluster.Nodes[1].Version = "v1\x1b[A"
	l.Cluster.Nodes[2].NodeID = "n\n3"
	l.Problems = []string{"the types: \x1b[H\xff"}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	at := func(columns, rows int, options ...func(*Screen)) Screen {
		s := Screen{Columns: columns, Rows: rows, Interval: time.Second}
		for _, option := range options {
			option(&s)
		}
		return s
	}
	dead := func(l *Look) {
		l.NoLeader, l.Cluster.Leader = true, ""
		l.Cluster.Nodes[1].State, l.Cluster.Nodes[1].Healthy, l.Cluster.Nodes[1].Problem = "unknown", false, "it does not answer"
	}
	for name, test := range map[string]struct {
		view   *View
		screen Screen
	}{
		"80x24":             {aView(t), at(80, 24)},
		"60x15":             {aView(t), at(60, 15)},
		"140x40":            {aView(t), at(140, 40)},
		"plain":             {aView(t), at(0, 0)},
		"80x24 many":        {aView(t, many), at(80, 24, func(s *Screen) { s.Focus, s.First[WorkersSection] = WorkersSection, 100 })},
		"60x15 workers":     {aView(t, many), at(60, 15, func(s *Screen) { s.Focus, s.First[WorkersSection] = WorkersSection, 1000 })},
		"80x24 no leader":   {aView(t, dead), at(80, 24, func(s *Screen) { s.Now = noon.Add(2200 * time.Millisecond) })},
		"80x24 late":        {aView(t), at(80, 24, func(s *Screen) { s.Now = noon.Add(9 * time.Second) })},
		"80x24 hostile":     {aView(t, hostile), at(80, 24)},
		"80x24 old types":   {aView(t, func(l *Look) { l.Types.At = l.At.Add(-8 * time.Second) }), at(80, 24)},
		"80x24 help":        {aView(t), at(80, 24, func(s *Screen) { s.Help = true })},
		"80x24 paused":      {aView(t), at(80, 24, func(s *Screen) { s.Paused, s.Sort[TypesSection] = true, Order{By: 't', Reversed: true} })},
		"80x24 nothing yet": {new(Model).Add(Look{At: noon}), at(80, 24)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for _, line := range Draw(test.view, test.screen) {
				b.WriteString(line.Text() + "\n")
			}
			golden(t, name, b.String())
		})
	}
	t.Run("80x24 colours", func(t *testing.T) {
		t.Parallel()
		frame := Frame(Draw(aView(t, dead), at(80, 24)), true)
		golden(t, "80x24 colours", strings.ReplaceAll(strings.ReplaceAll(frame, "\x1b", "<ESC>"), "\r\n", "\n")+"\n")
		if strings.Contains(Frame(Draw(aView(t, dead), at(80, 24)), false), "31m") {
			t.Error("colours though there should be none")
		}
	})
}

// Every frame fits the screen and contains nothing that moves the cursor.
func TestDraw_fits(t *testing.T) {
	t.Parallel()
	silent := &Model{}
	silent.Add(lookAt(0, "n2", working(0)))
	views := []*View{
		aView(t), aView(t, many), aView(t, hostile), new(Model).Add(Look{At: noon}),
		silent.Add(Look{At: noon.Add(time.Second), Err: os.ErrDeadlineExceeded, Problems: []string{"a", "b", "c", "d", strings.Repeat("e", 300)}}),
	}
	for _, v := range views {
		for columns := 1; columns <= 200; columns += 13 {
			for rows := 1; rows <= 50; rows += 4 {
				for focus := range sectionCount {
					s := Screen{Columns: columns, Rows: rows, Now: noon.Add(5 * time.Second), Interval: time.Second, Focus: focus, Help: rows%3 == 0 && columns%2 == 0}
					lines := Draw(v, s)
					if len(lines) > rows {
						t.Fatalf("%dx%d: %d lines", columns, rows, len(lines))
					}
					for _, line := range lines {
						if line.width() > columns {
							t.Fatalf("%dx%d: %d characters: %q", columns, rows, line.width(), line.Text())
						}
						if strings.ContainsFunc(line.Text(), func(r rune) bool { return r < ' ' || r > '~' }) {
							t.Fatalf("%dx%d: %q", columns, rows, line.Text())
						}
					}
				}
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "_")+".golden")
	if *updateGolden {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The page shows a frame exactly as it is drawn.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	frame, err := os.ReadFile(filepath.Join("testdata", "80x24.golden"))
	if err != nil {
		t.Fatal(err)
	}
	var block strings.Builder
	for line := range strings.Lines(string(frame)) {
		block.WriteString(strings.TrimRight("    "+line, " \n") + "\n")
	}
	if !strings.Contains(string(page), block.String()) {
		t.Errorf("docs/metrics.md does not show this frame:\n%s", block.String())
	}
}
