package workmeter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/cmd/claimq/serve"
	"github.com/claimq/claimq/internal/testwait"
)

// scraped returns the exported metrics: each series with its value, and the kinds and labels of each name.
func scraped(t *testing.T, at string) (series map[string]float64, listed map[string]string) {
	t.Helper()
	resp, err := http.Get("http://" + at + "/metrics") //nolint:noctx // of this test's server
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	series, listed = map[string]float64{}, map[string]string{}
	for name, f := range families {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		for _, m := range f.Metric {
			full, labels := name, ""
			for _, l := range m.Label {
				if l.GetName() == "outcome" {
					full += " " + l.GetValue()
				}
			}
			var names []string
			for _, l := range m.Label {
				names = append(names, "`"+l.GetName()+"`")
			}
			slices.Sort(names)
			labels = strings.Join(names, ", ")
			series[full] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			listed[name] = strings.ToLower(f.GetType().String()) + " " + labels
		}
	}
	return series, listed
}

func TestMeter(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	w, err := client.NewWorker(s.Client(), client.WorkerConfig{Concurrency: 7})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	client.Handle(w, "job", func(_ context.Context, job *client.Job[string]) error {
		switch job.Params {
		case "fails":
			return client.Permanent(errors.New("no"))
		case "waits":
			<-release
		}
		return nil
	})
	m := &Meter{Version: "v1", WorkerID: w.ID(), Client: s.Client(), Dropped: func() uint64 { return 5 }, Programs: &serve.Counts{}}
	at, end, err := m.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if before, _ := scraped(t, at); before["claimq_worker_slots"] != 0 || before["claimq_worker_info"] != 1 {
		t.Errorf("without a worker it tells %v", before)
	}
	m.Work(w)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	for what, status := range map[string]client.TaskStatus{"works": client.StatusCompleted, "fails": client.StatusFailed, "waits": client.StatusClaimed} {
		id, err := s.Client().Submit(t.Context(), client.Task{TaskType: "job", Payload: fmt.Appendf(nil, "%q", what)})
		if err != nil {
			t.Fatal(err)
		}
		s.Await(id, status)
	}
	testwait.Until(t, "the worker has counted what the server told", func() bool {
		counted := w.Stats()
		return counted.Running == 1 && counted.Completed == 1 && counted.Failed == 1
	})
	m.Programs.Connected.Add(1)
	m.Programs.Started.Add(2)
	m.Programs.Died.Add(3)
	m.Programs.LinesRefused.Add(4)
	m.Programs.AnswersDropped.Add(6)
	got, listed := scraped(t, at)
	for name, of := range map[string]int64{"requests": s.Client().Stats().Requests, "requests_repeated": s.Client().Stats().Repeats} {
		if v := got["claimq_worker_"+name+"_total"]; v > float64(of) {
			t.Errorf("%s are %v, later %d", name, v, of)
		}
		delete(got, "claimq_worker_"+name+"_total")
	}
	want := map[string]float64{
		"claimq_worker_info": 1, "claimq_worker_slots": 7, "claimq_worker_running": 1, "claimq_worker_claims_total": 3,
		"claimq_worker_tasks_total completed": 1, "claimq_worker_tasks_total failed": 1, "claimq_worker_tasks_total released": 0, "claimq_worker_tasks_total lost": 0,
		"claimq_worker_calls_unknown_total": 0, "claimq_log_lines_dropped_total": 5,
		"claimq_worker_processes": 1, "claimq_worker_processes_started_total": 2, "claimq_worker_processes_died_total": 3,
		"claimq_worker_lines_refused_total": 4, "claimq_worker_answers_dropped_total": 6,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it tells (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(documented(t), listed); diff != "" {
		t.Errorf("docs/metrics.md lists other metrics (-page +told):\n%s", diff)
	}
	close(release)
	stop()
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// documented is the table of docs/metrics.md: kind and labels of each name.
func documented(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## claimq work\n")
	listed := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		labels := strings.Split(strings.TrimSpace(cells[3]), ", ")
		slices.Sort(labels)
		listed[strings.Trim(cells[1], " `")] = strings.TrimSpace(cells[2]) + " " + strings.Join(labels, ", ")
	}
	return listed
}

// A connection beyond the bound is closed, and there is room again when one has ended.
func TestMeter_connections(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	m := &Meter{Client: s.Client(), Dropped: func() uint64 { return 0 }}
	at, end, err := m.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	var conns []net.Conn
	ask := func(conn net.Conn) (answered bool) {
		t.Helper()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
		n, _ := conn.Read(make([]byte, 1))
		return n == 1
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		return conn
	}
	for range connectionsMax {
		if !ask(dial()) {
			t.Fatalf("connection %d is not answered", len(conns))
		}
	}
	if ask(dial()) {
		t.Error("one more is answered")
	}
	_ = conns[0].Close()
	for !ask(dial()) { // once the server has seen it
		if len(conns) > 10_000 {
			t.Fatal("there is no room again")
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
}
