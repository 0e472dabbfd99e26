package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds a test that runs processes.
const patience = 3 * time.Minute

// lines holds the program's output line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// printed is more than the programs of a test print.
const printed = 1_000

// start runs the program with its own client until stop.
func start(t *testing.T, urls []string, plan client.Schedule, dir string) (out lines, stop func()) {
	t.Helper()
	c, err := client.New(client.Config{Endpoints: urls})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	out = make(lines, printed)
	go func() { ended <- run(ctx, c, plan, dir, out) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return out, stop
}

// next waits for the next line of the output.
func next(ctx context.Context, t *testing.T, out lines) string {
	t.Helper()
	select {
	case line := <-out:
		return strings.TrimSpace(line)
	case <-ctx.Done():
		t.Fatal("nothing more is printed")
		return ""
	}
}

func submitOrders(ctx context.Context, t *testing.T, c *client.Client, n int) {
	t.Helper()
	tasks := make([]client.Task, n)
	for i := range tasks {
		tasks[i] = client.Task{TaskType: "order", Payload: []byte("{}")}
	}
	if _, err := c.SubmitMany(ctx, tasks); err != nil {
		t.Fatal(err)
	}
}

// readReports returns the reports in the folder, sorted by time.
func readReports(t *testing.T, dir string) []report {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	reports := make([]report, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(data, &reports[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return reports
}

// The leader dies between two reports. Each time still has one task and each task one report. Together the reports
// leave nothing out and count nothing twice.
func TestCron_leaderDies(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := procs.Start(ctx, procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	c, err := client.New(client.Config{Endpoints: nodes.URLs()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	dir := t.TempDir()
	out, stopFirst := start(t, nodes.URLs(), client.Schedule{Every: time.Second}, dir)
	first := next(ctx, t, out) // when the first one is due
	_, stopSecond := start(t, nodes.URLs(), client.Schedule{}, dir)
	submitOrders(ctx, t, c, 20)
	waitReports(ctx, t, dir, 20)
	leader, err := nodes.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	submitOrders(ctx, t, c, 30)
	waitReports(ctx, t, dir, 50)
	if err := c.DeleteSchedule(ctx, scheduleName); err != nil {
		t.Fatal(err)
	}
	stopFirst()
	stopSecond()
	checkReports(t, readReports(t, dir), strings.TrimPrefix(first, "the next report is due at "))
	checkTasks(ctx, t, c, readReports(t, dir))
}

// waitReports waits until the reports count that many orders.
func waitReports(ctx context.Context, t *testing.T, dir string, want int) {
	t.Helper()
	for orders := 0; orders < want; {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the reports count %d orders, not %d", orders, want)
		}
		orders = 0
		for _, r := range readReports(t, dir) {
			orders += r.Count["order"]
		}
	}
}

// checkReports checks that the reports are due whole seconds after the first, that there is no gap between them, and
// that they count 50 orders.
func checkReports(t *testing.T, reports []report, first string) {
	t.Helper()
	if got := reports[0].To.Format(time.RFC3339); got != first {
		t.Errorf("the first report was due at %s, not %s", got, first)
	}
	orders, from := 0, time.Time{}
	for _, r := range reports {
		orders += r.Count["order"]
		if !r.From.Equal(from) || r.To.Sub(reports[0].To)%time.Second != 0 {
			t.Errorf("a report from %v to %v; the one before ended at %v", r.From, r.To, from)
		}
		from = r.To
	}
	if orders != 50 {
		t.Errorf("the reports count %d orders of 50", orders)
	}
}

// checkTasks checks that each report belongs to a different task, and that each task has a report. The last one may
// have none, because it may have been cut off.
func checkTasks(ctx context.Context, t *testing.T, c *client.Client, reports []report) {
	t.Helper()
	of := map[string]bool{}
	for _, r := range reports {
		of[r.Task] = true
	}
	if len(of) != len(reports) {
		t.Errorf("%d tasks have written %d reports", len(of), len(reports))
	}
	completed := 0
	for task, err := range c.Tasks(ctx, client.Filter{TaskType: taskType}) {
		if err != nil {
			t.Fatal(err)
		}
		if task.Status != client.StatusCompleted {
			continue
		}
		completed++
		if !of[task.ID] {
			t.Errorf("task %s is completed without a report", task.ID)
		}
	}
	if completed < len(reports)-1 {
		t.Errorf("%d tasks are completed, %d reports written", completed, len(reports))
	}
}

// A report due at half past two is written once a night. If the clock skips that time, it is written at the jump. If
// the time comes twice, it is written the first time.
func TestCron_clocksChange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		begin string
		want  []string // UTC, by the day
	}{
		{"2026-03-27T12:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"2026-10-23T12:00:00Z", []string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
	} {
		begin, err := time.Parse(time.RFC3339, test.begin)
		if err != nil {
			t.Fatal(err)
		}
		s := clienttest.New(t, clienttest.StartAt(begin))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		dir := t.TempDir()
		out, stop := start(t, []string{s.URL()}, client.Schedule{Cron: "30 2 * * *", Timezone: "Europe/Prague"}, dir)
		if got, want := next(ctx, t, out), "the next report is due at "+test.want[0]; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
		for i, want := range test.want {
			submitOrders(ctx, t, s.Client(), 1)
			s.Advance(schedule(ctx, t, s).NextRunAt.Sub(s.Now()))
			s.Await(schedule(ctx, t, s).LastTaskID, client.StatusCompleted)
			if got := next(ctx, t, out); !strings.Contains(got, "was due at "+want+" ") {
				t.Errorf("day %d: it says %q, want %s", i+1, got, want)
			}
		}
		stop()
		for _, r := range readReports(t, dir) {
			if r.Count["order"] != 1 {
				t.Errorf("the report of %v counts %v", r.To, r.Count)
			}
		}
	}
}

func schedule(ctx context.Context, t *testing.T, s *clienttest.Server) *client.Schedule {
	t.Helper()
	set, err := s.Client().GetSchedule(ctx, scheduleName)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// While a report is not written, no other task is submitted. The next report then begins where the last one ended.
func TestCron_overlap(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	plan := client.Schedule{Cron: "@hourly"}
	out, stop := start(t, []string{s.URL()}, plan, dir)
	next(ctx, t, out) // the schedule is set
	stop()
	submitOrders(ctx, t, s.Client(), 1)
	s.Advance(time.Hour) // a task for 01:00, and no worker
	submitOrders(ctx, t, s.Client(), 2)
	s.Advance(2 * time.Hour) // 02:00 and 03:00 are skipped
	set := schedule(ctx, t, s)
	if set.Skipped != 2 {
		t.Fatalf("the schedule is %+v", set)
	}
	out, stop = start(t, []string{s.URL()}, plan, dir) // it sets the schedule again
	next(ctx, t, out)
	next(ctx, t, out)
	s.Await(set.LastTaskID, client.StatusCompleted)
	s.Advance(time.Hour)
	next(ctx, t, out)
	stop()
	var got []string
	for _, r := range readReports(t, dir) {
		got = append(got, fmt.Sprintf("%s %v", r.To.Format(time.TimeOnly), maps.Clone(r.Count)))
	}
	want := []string{"01:00:00 map[order:1]", "04:00:00 map[order:2 report:1]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the reports (-want +got):\n%s", diff)
	}
}

// An attempt after a worker died before it completed its task writes the same report again.
func TestSave_again(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	due := clienttest.Start()
	for token := range int64(2) {
		if err := save(dir, report{To: due, Task: "7", Count: map[string]int{"order": 3}}, token+1); err != nil {
			t.Fatal(err)
		}
	}
	if got := readReports(t, dir); len(got) != 1 || got[0].Count["order"] != 3 {
		t.Errorf("the reports are %+v", got)
	}
	if _, ok, err := lastBefore(dir, due); ok || err != nil {
		t.Errorf("a report was due before itself (%v)", err)
	}
	if last, ok, err := lastBefore(dir, due.Add(time.Hour)); !ok || err != nil || !last.Equal(due) {
		t.Errorf("the last report was due at %v (%v)", last, err)
	}
}
