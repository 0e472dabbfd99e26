package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/claimq/claimq/internal/certs"
)

// beTop in the environment makes the test binary show the view on its terminal. Its value is the node's URL.
const beTop = "CLAIMQ_TEST_IS_TOP"

// patience bounds every wait.
const patience = time.Minute

func TestMain(m *testing.M) {
	url := os.Getenv(beTop)
	if url == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	source := NewSource(Config{TLS: &certs.Renewed{}, Endpoints: []string{url}, Timeout: patience})
	defer source.Close()
	if err := Run(ctx, source, source.Look(ctx), os.Stdin, os.Stdout, Options{Interval: 200 * time.Millisecond}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pty is a pseudo terminal, with what was written to it.
type pty struct {
	master, terminal *os.File
	before           unix.Termios

	mu      sync.Mutex
	written bytes.Buffer // guarded by mu
	changed chan struct{}
}

func openPTY(t *testing.T, columns, rows int) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{master: master, terminal: terminal, changed: make(chan struct{}, 1)}
	p.resize(t, columns, rows)
	p.before = p.settings(t)
	var reading sync.WaitGroup
	reading.Go(p.read)
	t.Cleanup(func() {
		terminal.Close() // the last one, so the master's read ends
		reading.Wait()
		master.Close()
	})
	return p
}

func (p *pty) resize(t *testing.T, columns, rows int) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
}

func (p *pty) settings(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(p.terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func (p *pty) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := p.master.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.written.Write(buffer[:n])
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written.String()
}

// waitFor waits until the output after the first from bytes contains all texts in this order. It returns the number
// of bytes up to their end.
func (p *pty) waitFor(t *testing.T, from int, texts ...string) int {
	t.Helper()
	deadline := time.After(patience)
	for {
		rest, at, found := p.text(), from, true
		for _, text := range texts {
			i := strings.Index(rest[at:], text)
			if found = i >= 0; !found {
				break
			}
			at += i + len(text)
		}
		if found {
			return at
		}
		select {
		case <-p.changed:
		case <-deadline:
			t.Fatalf("no %q in %q", texts, p.text()[from:])
		}
	}
}

func (p *pty) write(t *testing.T, text string) {
	t.Helper()
	if _, err := p.master.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// ensureRestored checks that the terminal has its old settings again and that the last output restores the screen.
func (p *pty) ensureRestored(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(p.before, p.settings(t)); diff != "" {
		t.Errorf("-before +after\n%s", diff)
	}
	end := p.waitFor(t, strings.LastIndex(p.text(), enterScreen), leaveScreen)
	if after := p.text()[end:]; strings.Contains(after, "\x1b[H") {
		t.Errorf("drawn after the end: %q", after)
	}
}

type lookFunc func(context.Context) Look

func (f lookFunc) Look(ctx context.Context) Look            { return f(ctx) }
func (lookFunc) Interval(asked time.Duration) time.Duration { return asked }

// However the view ends, it restores the terminal.
func TestRun(t *testing.T) {
	t.Parallel()
	first := lookAt(0, "n2", working(0))
	again := func(context.Context) Look { return lookAt(time.Second, "n2", working(1234)) }
	errBad := errors.New("bad")
	for name, test := range map[string]struct {
		look    lookFunc
		end     func(t *testing.T, p *pty, cancel func())
		wantErr string
	}{
		"q":      {again, func(t *testing.T, p *pty, _ func()) { p.write(t, "q") }, ""},
		"Ctrl-C": {again, func(t *testing.T, p *pty, _ func()) { p.write(t, "\x03") }, ""},
		"signal": {again, func(_ *testing.T, _ *pty, cancel func()) { cancel() }, ""},
		"while it looks": {
			func(ctx context.Context) Look { <-ctx.Done(); return Look{Err: ctx.Err()} },
			func(t *testing.T, p *pty, _ func()) { p.write(t, "q") }, "",
		},
		"panic": {func(context.Context) Look { panic(errBad) }, func(*testing.T, *pty, func()) {}, "looking: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPTY(t, 80, 24)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- run(ctx, test.look, first, p.terminal, p.terminal, Options{Interval: 200 * time.Millisecond})
			}()
			p.waitFor(t, 0, enterScreen, "leader n2", "img.resize")
			test.end(t, p, cancel)
			select {
			case err := <-ended:
				if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("ended with %v", err)
				}
			case <-time.After(patience):
				t.Fatal("it does not end")
			}
			p.ensureRestored(t)
		})
	}
}

// A process on its own terminal handles keys, a new size, Ctrl-Z and SIGTERM.
func TestRun_process(t *testing.T) {
	t.Parallel()
	_, servers := newNodes(t, 1)
	p := openPTY(t, 100, 30)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), beTop+"="+servers["n1"].URL)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.terminal, p.terminal, p.terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()

	at := p.waitFor(t, 0, enterScreen, "leader n1", "mail", "w1", "q quit")
	if s := p.settings(t); s.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG) != 0 {
		t.Error("the terminal is not in raw mode")
	}
	p.write(t, "?")
	at = p.waitFor(t, at, "claimq top: 200ms between looks")
	p.write(t, "?")
	p.resize(t, 60, 15) // it tells the process with SIGWINCH
	at = p.waitFor(t, at, "tab workers", "tab workers")
	frames := strings.Split(p.text(), "\x1b[H")
	if n := strings.Count(frames[len(frames)-1], "\r\n"); n > 15*2 {
		t.Errorf("%d lines after the resize", n)
	}
	p.write(t, "\x1a")                                          // no shell could resume it, so it does not stop
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil { // as after a stop that it could not see
		t.Fatal(err)
	}
	p.waitFor(t, at, leaveScreen, enterScreen, "leader n1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v: %s", err, p.text())
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	p.ensureRestored(t)
}
