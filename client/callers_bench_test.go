package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkCallers is a program in which many goroutines submit while a Worker has as many slots, at a node that
// answers after a millisecond. It reports the processor time of a task, of which other work on the machine changes
// less than of the time on the clock.
func BenchmarkCallers(b *testing.B) {
	for _, callers := range []int{1, 64, 256, 1000} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) { benchmarkCallers(b, callers) })
	}
}

func benchmarkCallers(b *testing.B, callers int) {
	n := &quickNode{submitted: make(chan int, b.N)}
	c, err := newClient(Config{Endpoints: []string{"http://memory"}, Timeout: time.Hour}, n, n)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	w, err := NewWorker(c, WorkerConfig{Concurrency: callers})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	left, done := atomic.Int64{}, atomic.Int64{}
	left.Store(int64(b.N))
	Handle(w, "bench", func(context.Context, *Job[json.RawMessage]) error {
		if done.Add(1) == int64(b.N) {
			stop()
		}
		return nil
	})
	task := Task{TaskType: "bench", Payload: []byte(`"` + strings.Repeat("x", 254) + `"`)}
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := c.Submit(context.Background(), task); err != nil {
					b.Error(err)
				}
			}
		})
	}
	if err := w.Run(ctx); err != nil {
		b.Error(err)
	}
	all.Wait()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(c.Stats().Acts)/float64(c.Stats().Requests), "calls/request")
}

// processorTime returns the time on a processor that this process has had.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// quickNode answers submits, claims, and completes that claim the next task, after quickTime and with as little work
// as possible.
type quickNode struct {
	ids, tokens atomic.Int64
	submitted   chan int // an element for each task that is not claimed
}

func (n *quickNode) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	<-time.After(quickTime)
	var answer []byte
	switch path := r.URL.Path; {
	case path == "/api/tasks" && bytes.HasPrefix(body, []byte(`{"tasks":[`)):
		answer = []byte(`{"success":true,"results":[`)
		for i := range bytes.Count(body, []byte(`"idempotency_key":`)) {
			answer = strconv.AppendInt(append(comma(answer, i), `{"id":`...), n.submit(), 10)
			answer = append(answer, `,"created":true}`...)
		}
		answer = append(answer, `]}`...)
	case path == "/api/tasks":
		answer = fmt.Appendf(answer, `{"success":true,"created":true,"task":{"id":%d,"task_type":"bench","status":"pending"}}`, n.submit())
	case path == "/api/tasks/claim":
		var claim struct {
			Limit  int `json:"limit"`
			WaitMS int `json:"wait_ms"`
		}
		if err := json.Unmarshal(body, &claim); err != nil {
			return nil, err
		}
		answer = n.claim(r.Context(), claim.Limit, claim.WaitMS > 0)
	case path == "/api/batch":
		answer = []byte(`{"success":true,"results":[`)
		for i := range bytes.Count(body, []byte(`"op":"complete"`)) {
			answer = n.complete(comma(answer, i))
		}
		answer = append(answer, `]}`...)
	default:
		answer = n.complete(nil)
	}
	return &http.Response{
		StatusCode: http.StatusOK, ContentLength: int64(len(answer)), Request: r,
		Header: http.Header{"Content-Length": {strconv.Itoa(len(answer))}}, Body: io.NopCloser(bytes.NewReader(answer)),
	}, nil
}

const quickTime = time.Millisecond

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

func (n *quickNode) submit() int64 {
	id := n.ids.Add(1)
	n.submitted <- int(id)
	return id
}

// claim answers a claim of up to limit tasks, and waits for the first one if wait says so.
func (n *quickNode) claim(ctx context.Context, limit int, wait bool) []byte {
	answer := []byte(`{"success":true,"tasks":[`)
	if wait {
		select {
		case id := <-n.submitted:
			answer = n.appendTask(answer, id)
			limit--
		case <-ctx.Done():
			limit = 0
		}
	}
	for ; limit > 0; limit-- {
		select {
		case id := <-n.submitted:
			answer = n.appendTask(append(answer, ','), id)
			continue
		default:
		}
		break
	}
	return append(answer, "]}"...)
}

// complete appends the answer to a complete with a claim.
func (n *quickNode) complete(answer []byte) []byte {
	answer = append(answer, `{"success":true,"task":{"id":1,"status":"completed"},"claimed":{"task":`...)
	select {
	case id := <-n.submitted:
		answer = n.appendTask(answer, id)
	default:
		answer = append(answer, "null"...)
	}
	return append(answer, "}}"...)
}

func (n *quickNode) appendTask(b []byte, id int) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), int64(id), 10)
	b = append(b, quickTask...)
	b = strconv.AppendInt(append(b, `,"claim_token":`...), n.tokens.Add(1), 10)
	return append(b, '}')
}

// quickTask are the fields of a claimed task, as a node sends them.
var quickTask = `,"task_type":"bench","params":"` + strings.Repeat("x", 254) + `","priority":0,"max_attempts":10,"attempts":1,` +
	`"idempotency_key":"ABCDEFGHIJKLMNOPQRSTUVWXYZ","status":"claimed","worker_id":"host-1234-abcdefghij",` +
	`"claimed_at":"2026-11-30T08:00:00.000Z","lease_expires_at":"2026-11-30T08:00:30.000Z","lease_remaining_ms":30000,` +
	`"created_at":"2026-11-30T08:00:00.000Z","updated_at":"2026-11-30T08:00:00.000Z","completed_at":null,"cancel_requested":false`
