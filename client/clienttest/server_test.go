package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// mail is a task of the type mail.
func mail() client.Task {
	return client.Task{TaskType: "mail", Payload: []byte(`{"to":"ada@example.org"}`), MaxAttempts: 3}
}

func submit(t *testing.T, s *clienttest.Server, task client.Task) string {
	t.Helper()
	id, err := s.Client().Submit(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// claim claims the next mail.
func claim(t *testing.T, s *clienttest.Server, worker string) *client.Claim {
	t.Helper()
	c, err := s.Client().ClaimNext(t.Context(), client.ClaimRequest{WorkerID: worker, Types: []string{"mail"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantStatus(t *testing.T, s *clienttest.Server, id string, want client.TaskStatus) *client.Task {
	t.Helper()
	task, err := s.Client().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if task.Status != want {
		t.Fatalf("task %s is %s, want %s", id, task.Status, want)
	}
	return task
}

func TestServer_everyTaskManagerCall(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	var m client.TaskManager = s.Client()
	ctx := t.Context()

	task := mail()
	task.IdempotencyKey = "mail-1"
	id, err := m.Submit(ctx, task)
	if err != nil || id != "1" {
		t.Fatalf("Submit = %q, %v", id, err)
	}
	if again, err := m.Submit(ctx, task); err != nil || again != id {
		t.Errorf("the same Submit = %q, %v", again, err)
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	must("Claim", m.Claim(ctx, id, "w1"))
	if err := m.Claim(ctx, id, "w2"); !errors.Is(err, client.ErrTaskAlreadyClaimed) {
		t.Errorf("another's Claim: %v", err)
	}
	must("Fail", m.Fail(ctx, id, errors.New("no line")))
	wantStatus(t, s, id, client.StatusScheduled)
	s.Advance(time.Second)
	must("Claim", m.Claim(ctx, id, "w1"))
	must("Retry", m.Retry(ctx, id))
	must("Claim", m.Claim(ctx, id, "w1"))
	must("Complete", m.Complete(ctx, id, []byte(`{"sent":true}`)))
	if got, err := m.Get(ctx, id); err != nil || got.Status != client.StatusCompleted || string(got.Result) != `{"sent":true}` {
		t.Errorf("Get = %+v, %v", got, err)
	}
	if got, err := m.GetByIdempotencyKey(ctx, "mail-1"); err != nil || got.ID != id {
		t.Errorf("GetByIdempotencyKey = %+v, %v", got, err)
	}
	if all, err := m.List(ctx, client.StatusCompleted); err != nil || len(all) != 1 {
		t.Errorf("List = %v, %v", all, err)
	}
	must("Delete", m.Delete(ctx, id))
	if _, err := m.Get(ctx, id); !errors.Is(err, client.ErrTaskNotFound) {
		t.Errorf("Get of what was deleted: %v", err)
	}
	must("Close", m.Close())
	if _, err := m.Submit(ctx, task); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Submit after Close: %v", err)
	}
}

func TestServer_sameCallsSameAnswers(t *testing.T) {
	t.Parallel()
	play := func() string {
		s := clienttest.New(t)
		var all []string
		for range 5 {
			submit(t, s, mail())
		}
		for i := range 5 {
			c := claim(t, s, "w1")
			s.Advance(time.Duration(i) * time.Second)
			all = append(all, c.Task.ID+" by "+strconv.FormatInt(c.Token, 10)+" at "+s.Now().String())
		}
		return strings.Join(all, ", ")
	}
	if first, second := play(), play(); first != second {
		t.Errorf("first:\n%s\nthen:\n%s", first, second)
	}
}

func TestServer_parallelUse(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	const tasks, workers = 60, 6
	var done sync.WaitGroup
	for i := range workers {
		done.Go(func() {
			for range tasks / workers {
				if _, err := s.Client().Submit(t.Context(), mail()); err != nil {
					t.Error(err)
				}
			}
		})
		done.Go(func() {
			for range tasks / workers {
				c, err := s.Client().ClaimNext(t.Context(), client.ClaimRequest{WorkerID: "w" + strconv.Itoa(i), Wait: time.Minute, Lease: time.Hour})
				if err != nil {
					t.Error(err)
					return
				}
				s.Advance(time.Second)
				if err := c.Complete(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if all, err := s.Client().List(t.Context(), client.StatusCompleted); err != nil || len(all) != tasks {
		t.Errorf("%d completed, %v", len(all), err)
	}
	if got := s.Now().Sub(clienttest.Start()); got != tasks*time.Second {
		t.Errorf("the clock has moved by %v", got)
	}
}

// A request with the same id but without a wait ends a waiting claim, as in a cluster.
func TestServer_endsAWait(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	c := s.Client()
	claim := func(more string, wait time.Duration) error {
		body := fmt.Sprintf(`{"worker_id":"w","task_types":["mail"],"limit":2,"claim_request_id":"r"%s}`, more)
		_, err := c.Do(t.Context(), client.Request{Method: "POST", Path: "/api/tasks/claim", Body: []byte(body), Repeatable: true, Wait: wait})
		return err
	}
	answered := make(chan error)
	go func() { answered <- claim(`,"wait_ms":60000`, time.Minute) }()
	s.AwaitWaiting(1)
	if err := claim("", 0); err != nil || s.Waiting() != 0 {
		t.Errorf("%d claims wait, %v", s.Waiting(), err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// Not parallel, because it checks all goroutines of the process.
func TestServer_Close(t *testing.T) {
	s := clienttest.New(t)
	other, err := client.New(client.Config{Endpoints: []string{s.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := other.Submit(t.Context(), mail())
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan error)
	go func() {
		_, err := s.Client().ClaimNext(t.Context(), client.ClaimRequest{WorkerID: "w1", Types: []string{"none"}, Wait: time.Hour})
		waits <- err
	}()
	go func() {
		_, err := s.Client().Wait(t.Context(), id)
		waits <- err
	}()
	s.Close()
	for range 2 {
		if err := <-waits; !errors.Is(err, client.ErrClosed) {
			t.Errorf("a call that waited: %v", err)
		}
	}
	s.Close()
	other.Close()

	for end := time.Now().Add(30 * time.Second); ; {
		left := ours()
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines are left:\n%s", strings.Join(left, "\n\n"))
		}
		<-time.After(time.Millisecond)
	}
}

// ours returns the stacks of the goroutines of servers and clients, except the sleeping one of fasthttp.
func ours() []string {
	all := make([]byte, 1<<20)
	var left []string
	for _, stack := range strings.Split(string(all[:runtime.Stack(all, true)]), "\n\n")[1:] {
		for _, of := range []string{"claimq/api.", "claimq/client.", "clienttest.", "fasthttp.(*workerPool)", "fasthttp.(*Server)", "http.(*persistConn)"} {
			if strings.Contains(stack, of) && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, "time.Sleep(") {
				left = append(left, stack)
				break
			}
		}
	}
	return left
}

func TestServer_refusesWhatNeedsACluster(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	for _, path := range []string{"/api/cluster/join", "/api/cluster/remove", "/api/cluster/promote", "/api/cluster/demote", "/api/cluster/transfer"} {
		body := `{"node_id":"n2"}`
		if path == "/api/cluster/join" {
			body = `{"node_id":"n2","peer_addr":"10.0.0.2:7401"}`
		}
		resp, err := http.Post(s.URL()+path, "application/json", strings.NewReader(body)) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4096)
		n, _ := resp.Body.Read(answer)
		resp.Body.Close()
		if got := string(answer[:n]); resp.StatusCode < 400 || !strings.Contains(got, "membership_refused") || !strings.Contains(got, "clienttest") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func TestServer_failsTheTest(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	s := clienttest.New(r)
	s.Advance(-time.Second)
	s.Await("17", client.StatusCompleted)
	if len(r.said) != 2 || !strings.Contains(r.said[0], "time does not go back") || !strings.Contains(r.said[1], "task 17") {
		t.Errorf("the test was told %q", r.said)
	}
	if !s.Now().Equal(clienttest.Start()) {
		t.Errorf("the clock is at %v", s.Now())
	}
}

func TestServer_Await(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	id := submit(t, s, mail())
	done := make(chan error, 1)
	go func() {
		c, err := s.Client().ClaimNext(context.Background(), client.ClaimRequest{WorkerID: "w1", Wait: time.Minute})
		if err == nil {
			err = c.Complete(context.Background(), []byte(`7`))
		}
		done <- err
	}()
	if task := s.Await(id, client.StatusCompleted); string(task.Result) != "7" {
		t.Errorf("the result is %q", task.Result)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
