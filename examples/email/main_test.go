package main

import (
	"context"
	"errors"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds a test that runs processes.
const patience = 3 * time.Minute

// asProgram in the environment makes the test's binary run as the program.
const asProgram = "CLAIMQ_EXAMPLE_EMAIL"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// printed collects a program's output. Concurrent calls are safe.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{} // closed at the next write
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.news != nil {
		close(p.news)
		p.news = nil
	}
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// waitFor waits until the text has been printed.
func (p *printed) waitFor(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	for {
		p.mu.Lock()
		there := strings.Contains(p.text.String(), want)
		if p.news == nil {
			p.news = make(chan struct{})
		}
		news := p.news
		p.mu.Unlock()
		if there {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			t.Fatalf("%q is not printed but\n%s", want, p)
		}
	}
}

// lab is a node, a mail server and a database.
type lab struct {
	ctx   context.Context
	c     *client.Client
	url   string
	smtp  string
	mails *printed
	book  book
}

// newLab starts a node, and a mail server that calls got.
func newLab(t *testing.T, got func(string)) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	l := &lab{ctx: ctx, mails: &printed{}, book: book{path: filepath.Join(t.TempDir(), "mail.db")}}
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := procs.Start(ctx, procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nodes.Close)
	l.url = nodes.URLs()[0]
	if l.c, err = client.New(client.Config{Endpoints: nodes.URLs()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.c.Close() })
	l.smtp = startSink(t, &sink{out: l.mails, got: got})
	return l
}

// startSink returns the address of a mail server. The server stops when the test ends.
func startSink(t *testing.T, s *sink) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// start starts the program as a process. It is killed when the test ends, if it still runs.
func (l *lab) start(t *testing.T, args ...string) (*exec.Cmd, *printed) {
	t.Helper()
	out := &printed{}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "CLAIMQ_ENDPOINTS="+l.url)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, procs.ChildAttr()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd, out
}

func (l *lab) worker(t *testing.T) (*exec.Cmd, *printed) {
	t.Helper()
	cmd, out := l.start(t, "work", "-smtp", l.smtp, "-db", l.book.path, "-lease", "3s", "-concurrency", "1")
	out.waitFor(l.ctx, t, "sends by")
	return cmd, out
}

// submit submits the order and returns the program's output.
func (l *lab) submit(t *testing.T, order string) string {
	t.Helper()
	cmd, out := l.start(t, "submit", order, "ada@example.org")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("submit: %v: %s", err, out)
	}
	return out.String()
}

// stop stops the process and returns when it has stopped. A signal takes time, and meanwhile the process could begin
// a transaction, which would block all others.
func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case status.Stopped():
			return nil
		default:
			return errors.New("the worker has ended")
		}
	}
}

// A worker is stopped after the mail server has its mail, for longer than its lease. Another worker does the task.
// When the first one goes on, the database refuses its write. Both mails have the same Message-ID.
func TestEmail_workerStoppedForTooLong(t *testing.T) {
	t.Parallel()
	workers, stopped := make(chan *exec.Cmd, 1), make(chan error, 1)
	// The only worker sends the first mail, and is stopped before it gets the answer.
	stopFirst := sync.OnceFunc(func() { stopped <- stop(<-workers) })
	l := newLab(t, func(string) { stopFirst() })
	first, slow := l.worker(t)
	workers <- first
	said := l.submit(t, "17")
	if again := l.submit(t, "17"); said != "task 1 sends the confirmation of order 17\n" || again != said {
		t.Errorf("submitted twice: %q, then %q", said, again)
	}
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-l.ctx.Done():
		t.Fatalf("no mail: %s", slow)
	}

	_, quick := l.worker(t)
	task, err := l.c.Wait(l.ctx, "1")
	if err != nil || task.Status != client.StatusCompleted || task.Attempts != 2 {
		t.Fatalf("the task is %+v (%v)\nthe first worker:\n%s\nthe second:\n%s", task, err, slow, quick)
	}
	quick.waitFor(l.ctx, t, "may have sent it, too")
	quick.waitFor(l.ctx, t, "sent to ada@example.org")
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	slow.waitFor(l.ctx, t, "order 17, token 1: sent, but the database refused the write: token 2 has written since, 1 is older")

	// The first worker goes on with other tasks, and ends when it is told to.
	l.submit(t, "18")
	l.mails.waitFor(l.ctx, t, "confirmation-18")
	if task, err = l.c.Wait(l.ctx, "2"); err != nil || task.Status != client.StatusCompleted {
		t.Errorf("the next task is %+v (%v)", task, err)
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Errorf("the worker ended with %v:\n%s", err, slow)
	}
	var rows strings.Builder
	if err := l.book.print(&rows); err != nil {
		t.Fatal(err)
	}
	want := `confirmation-17 {"fence":2,"state":"sent"}
confirmation-18 {"fence":3,"state":"sent"}
`
	if diff := cmp.Diff(want, rows.String()); diff != "" {
		t.Errorf("the database (-want +got):\n%s", diff)
	}
	_, mails, _ := strings.Cut(l.mails.String(), "\n")
	want = `delivered <confirmation-17@shop.example> to ada@example.org
delivered <confirmation-17@shop.example> to ada@example.org AGAIN
delivered <confirmation-18@shop.example> to ada@example.org
`
	if diff := cmp.Diff(want, mails); diff != "" {
		t.Errorf("the mails (-want +got):\n%s", diff)
	}
}

// The database accepts writes of the newest claim, even twice. It refuses those of an older claim, even at the
// beginning. A mail that is marked sent stays so.
func TestBook(t *testing.T) {
	t.Parallel()
	b := book{path: filepath.Join(t.TempDir(), "mail.db")}
	begin := func(token int64, want row, wantErr error) {
		t.Helper()
		if before, err := b.begin("k", token); before != want || !errors.Is(err, wantErr) {
			t.Errorf("begin with token %d: %+v, %v", token, before, err)
		}
	}
	finish := func(token int64, wantErr error) {
		t.Helper()
		if err := b.finish("k", token); !errors.Is(err, wantErr) {
			t.Errorf("finish with token %d: %v", token, err)
		}
	}
	begin(5, row{}, nil)
	begin(5, row{5, stateSending}, nil)
	begin(7, row{5, stateSending}, nil)
	finish(5, errFenced)
	begin(6, row{}, errFenced)
	finish(7, nil)
	finish(7, nil)
	begin(8, row{7, stateSent}, nil)
	begin(9, row{7, stateSent}, nil)
	finish(6, errFenced)
}

// A mail server that checks names delivers a mail once, even if it is sent several times. A mail that it refuses for
// good is not sent again.
func TestSend(t *testing.T) {
	t.Parallel()
	mails := &printed{}
	server := startSink(t, &sink{once: true, out: mails})
	for range 2 {
		if err := send(t.Context(), server, confirmation(params{Order: "17", To: "ada@example.org"})); err != nil {
			t.Fatal(err)
		}
	}
	_, got, _ := strings.Cut(mails.String(), "\n")
	want := "delivered <confirmation-17@shop.example> to ada@example.org\ndropped <confirmation-17@shop.example>: it was delivered before\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the mails (-want +got):\n%s", diff)
	}
	refusal := send(t.Context(), server, message{to: "ada@example.org", text: "no header"})
	if code := (*textproto.Error)(nil); !errors.As(refusal, &code) || code.Code != 554 || whetherToRepeat(refusal) == refusal { //nolint:errorlint // whether it was wrapped
		t.Errorf("a refused mail: %v", refusal)
	}
	if busy := error(&textproto.Error{Code: 452}); whetherToRepeat(busy) != busy { //nolint:errorlint // the same
		t.Error("a mail server that is busy is not asked again")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := send(ended, server, confirmation(params{Order: "18", To: "ada@example.org"})); !errors.Is(err, context.Canceled) || strings.Contains(mails.String(), "-18@") {
		t.Errorf("sent for a claim that is over: %v, %s", err, mails)
	}
}

// Parameters that would get into a header of the mail or into another row are refused.
func TestParams(t *testing.T) {
	t.Parallel()
	for _, p := range []params{{}, {"17", ""}, {"", "a@b.example"}, {"17\r\nBcc: c@d.example", "a@b.example"}, {"17", "a@b.example\r\nX: y"}, {"17", "Ada <a@b.example>"}} {
		if p.check() == nil {
			t.Errorf("%+v is taken", p)
		}
	}
	if err := (params{"A-17", "a@b.example"}).check(); err != nil {
		t.Error(err)
	}
}
