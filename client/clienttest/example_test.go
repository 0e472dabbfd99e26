package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
)

// Mail are the parameters of the tasks of the type mail.
type Mail struct {
	To string `json:"to"`
}

// mailer is the program under test: it handles mail.
type mailer struct {
	send func(Mail) error
}

// worker returns a worker that handles mail.
func (m *mailer) worker(c *client.Client) (*client.Worker, error) {
	w, err := client.NewWorker(c, client.WorkerConfig{ID: "w1"})
	if err != nil {
		return nil, err
	}
	client.Handle(w, "mail", func(_ context.Context, job *client.Job[Mail]) error {
		if err := m.send(job.Params); err != nil {
			return err
		}
		job.SetResult(map[string]int{"attempt": job.Attempt})
		return nil
	})
	return w, nil
}

// An end-to-end test of a worker: the first attempt fails, and the second follows once the test has advanced past the
// backoff. In a test, t is its *testing.T.
func Example() {
	var t example
	defer t.end()

	s := clienttest.New(&t)
	errs := []error{errors.New("line busy"), nil}
	m := mailer{send: func(mail Mail) error {
		err := errs[0]
		errs = errs[1:]
		fmt.Printf("to %s: %v\n", mail.To, err)
		return err
	}}
	w, err := m.worker(s.Client())
	if err != nil {
		t.Fatalf("worker: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	task, err := client.NewTask("mail", Mail{To: "ada@example.org"})
	if err != nil {
		t.Fatalf("task: %v", err)
	}
	task.Backoff = &client.Backoff{Initial: time.Minute, Jitter: client.NoJitter}
	id, err := s.Client().Submit(ctx, task)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	again := s.Await(id, client.StatusScheduled)
	fmt.Printf("%s until %s\n", again.Status, again.RunAt.Sub(s.Now()))

	s.Advance(time.Minute)
	done := s.Await(id, client.StatusCompleted)
	fmt.Printf("%s: %s\n", done.Status, done.Result)

	stop()
	if err := <-stopped; err != nil {
		t.Errorf("run: %v", err)
	}
	// Output:
	// to ada@example.org: line busy
	// scheduled until 1m0s
	// to ada@example.org: <nil>
	// completed: {"attempt":2}
}

// example stands in for a testing.T, which an example does not have.
type example struct{ cleanups []func() }

func (e *example) Helper()                           {}
func (e *example) Cleanup(f func())                  { e.cleanups = append(e.cleanups, f) }
func (e *example) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (e *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (e *example) end() {
	for _, f := range e.cleanups {
		f()
	}
}

// The test advances past the lease of a Worker's claim while its handler runs.
func TestWorker_losesItsLease(t *testing.T) {
	t.Parallel()
	s := clienttest.New(t)
	w, err := client.NewWorker(s.Client(), client.WorkerConfig{ID: "w1", Lease: 3 * time.Second, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	began, cause := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
		began <- job.Task.ID
		<-ctx.Done() // at the next extend, a second later
		stop()       // otherwise the worker would claim it again
		cause <- context.Cause(ctx)
		return nil
	})
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	id := submit(t, s, mail())
	<-began
	s.Advance(3 * time.Second)
	if err := <-cause; !errors.Is(err, client.ErrLeaseLost) {
		t.Errorf("the handler's context ended by %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
	// The handler's result was not sent.
	wantStatus(t, s, id, client.StatusScheduled)
}
