package recipes

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// network is a network namespace with only a loopback interface, so that pages can use
// claimq's default ports.
type network struct {
	keeper *exec.Cmd
}

// newNetwork makes a network, for as long as the test runs. It needs root.
func newNetwork(t *testing.T) *network {
	t.Helper()
	ready, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	n := &network{keeper: exec.Command("sh", "-c", "ip link set lo up && echo up && exec sleep 1000000")}
	n.keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	n.keeper.Stdout = w
	err = n.keeper.Start()
	_ = w.Close()
	if err != nil {
		t.Fatalf("make a network namespace, which root can: %v", err)
	}
	t.Cleanup(func() {
		_ = n.keeper.Process.Kill()
		_ = n.keeper.Wait()
	})
	if _, err := ready.Read(make([]byte, 3)); err != nil {
		t.Fatalf("bring the loopback of a network namespace up, with ip: %v", err)
	}
	return n
}

// shell returns a command in the network, run with sh. It has a separate process group,
// like in a terminal.
func (n *network) shell(ctx context.Context, dir, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", "--net=/proc/"+strconv.Itoa(n.keeper.Process.Pid)+"/ns/net", "--", "sh", "-ec", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// running is a command that runs in the background, as in another terminal.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer // guarded by mu
}

// start starts a command. It is interrupted when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = r, r
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(r.interrupt)
	return r
}

// Write collects the command's output.
func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(p)
}

func (r *running) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// interrupt presses Ctrl-C. It returns when the command, and everything that it has started
// in the terminal, has ended.
func (r *running) interrupt() {
	select {
	case <-r.ended: // its group may be another's by now
	default:
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGINT)
		<-r.ended
	}
}

// until waits until the output is ok, or the command has ended, and reports whether it is
// ok.
func (r *running) until(timeout time.Duration, ok func(printed string) bool) bool {
	deadline := time.After(timeout)
	for !ok(r.printed()) {
		select {
		case <-r.ended:
			return ok(r.printed())
		case <-deadline:
			return false
		case <-time.After(lookPause):
		}
	}
	return true
}

// says returns a function for until.
func says(text string) func(string) bool {
	return func(printed string) bool { return strings.Contains(printed, text) }
}
