package procs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Errors of a node's process.
var (
	// ErrRunning is returned when a running node is started.
	ErrRunning = errors.New("the node runs already")
	// ErrNotRunning is returned when an operation needs a running node.
	ErrNotRunning = errors.New("the node does not run")
)

// pollInterval is the interval between checks of a node's condition.
const pollInterval = 10 * time.Millisecond

// readyTimeout bounds one check whether a node is ready.
const readyTimeout = time.Second

// Node is one claimq server: its folder, ports and flags, and its process, if it runs. It
// is safe for concurrent use.
type Node struct {
	ID       string // node id, n1, n2, ...
	DataDir  string
	LogPath  string // output of all its processes
	HTTPAddr string
	PeerAddr string
	// Args are the arguments of the binary. They may only be changed while it does not run.
	Args []string

	binary string
	env    []string
	host   Host        // nil: this machine
	dial   DialFunc    // nil: an ordinary dialer
	tls    *tls.Config // nil: the API speaks plain HTTP
	key    string      // API key, "" if the node is open
	pipes  bool        // it prints to a pipe
	joins  bool        // it does not belong to the initial cluster

	tokenFile string // of the join token with which it may join

	mu     sync.Mutex // guards the fields below
	files  int        // bound of open files, 0 = as for this process
	pipe   *pipe      // of the last start; nil: it prints to a file
	cmd    *exec.Cmd  // nil before the first start
	exited chan struct{}
	code   int // exit code, once exited is closed; 128 + signal if a signal ended it
}

// URL returns the address of the node's API.
func (n *Node) URL() string {
	if n.tls != nil {
		return "https://" + n.HTTPAddr
	}
	return "http://" + n.HTTPAddr
}

// SetFlag changes the flag's value from the next start on.
func (n *Node) SetFlag(flag, value string) {
	if i := slices.Index(n.Args, flag); i >= 0 && i+1 < len(n.Args) {
		n.Args[i+1] = value
		return
	}
	n.Args = append(n.Args, flag, value)
}

// JoinBy makes the node join the cluster of the nodes with these peer addresses at the next
// start, if its folder is empty then, with the token of SetJoinToken.
func (n *Node) JoinBy(peerAddrs []string) {
	for _, flag := range []string{"--initial-cluster", "--join"} {
		if i := slices.Index(n.Args, flag); i >= 0 {
			n.Args = slices.Delete(n.Args, i, i+2)
		}
	}
	n.Args = append(n.Args, "--join", strings.Join(peerAddrs, ","))
	n.SetFlag("--join-token-file", n.tokenFile)
}

// NewJoinToken returns a join token for one node, and the body of the call that registers
// it, POST /api/cluster/tokens.
func NewJoinToken() (token, body string) {
	token = rand.Text()
	return token, fmt.Sprintf(`{"token_sha256":"%x","expires_in_ms":3600000}`, sha256.Sum256([]byte(token)))
}

// SetJoinToken sets the token with which the node joins.
func (n *Node) SetJoinToken(token string) error {
	return os.WriteFile(n.tokenFile, []byte(token+"\n"), 0o600)
}

// SetBinary makes the node run another binary from the next start on.
func (n *Node) SetBinary(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.binary = path
}

// SetFiles bounds the node's open files from the next start on; 0 means no
// bound.
func (n *Node) SetFiles(most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.files = most
}

// Wipe empties the node's folder, like a new disk. The node must not run.
func (n *Node) Wipe() error {
	entries, err := os.ReadDir(n.DataDir)
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(n.DataDir, e.Name())))
	}
	return errors.Join(errs...)
}

// Start starts the process. It does not wait until the node is ready.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runningLocked() {
		return fmt.Errorf("start %s: %w", n.ID, ErrRunning)
	}
	log, err := os.OpenFile(n.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.ID, err)
	}
	cmd := exec.Command(n.binary, n.Args...)
	if n.files > 0 {
		cmd = exec.Command("prlimit", append([]string{fmt.Sprintf("--nofile=%d:%[1]d", n.files), n.binary}, n.Args...)...)
	}
	cmd.Stdout, cmd.Stderr = log, log
	var out *pipe
	if n.pipes {
		if out, err = openPipe(log); err != nil {
			return errors.Join(fmt.Errorf("start %s: %w", n.ID, err), log.Close())
		}
		cmd.Stdout, cmd.Stderr = out.write, out.write
	}
	// With Go's default garbage collection, like a real server.
	cmd.Env = append(append(os.Environ(), "GOGC="), n.env...)
	cmd.SysProcAttr = ChildAttr()
	start := cmd.Start
	if n.host != nil {
		start = func() error { return n.host.Start(cmd) }
	}
	if err := start(); err != nil {
		if out != nil {
			out.end()
		}
		return errors.Join(fmt.Errorf("start %s: %w", n.ID, err), log.Close())
	}
	exited := make(chan struct{})
	n.cmd, n.exited, n.pipe = cmd, exited, out
	go n.await(cmd, out, log, exited)
	return nil
}

// StartReady starts the process and waits until the node is ready.
func (n *Node) StartReady(ctx context.Context) error {
	if err := n.Start(); err != nil {
		return err
	}
	return n.WaitReady(ctx)
}

// await collects the exit code. It ends with the process, and calls that end the process
// wait for exited.
func (n *Node) await(cmd *exec.Cmd, out *pipe, log *os.File, exited chan struct{}) {
	_ = cmd.Wait() // the code is in ProcessState
	if out != nil {
		out.end()
	}
	_ = log.Close()
	code := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	n.mu.Lock()
	n.code = code
	n.mu.Unlock()
	close(exited)
}

func (n *Node) runningLocked() bool {
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// Running reports whether the process runs or is paused.
func (n *Node) Running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.runningLocked()
}

// PID returns the process id of the last start, 0 before.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return 0
	}
	return n.cmd.Process.Pid
}

// Exited returns a channel that is closed when the process of the last start ends, nil
// before the first start.
func (n *Node) Exited() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exited
}

// ExitCode returns the exit code of the last start's process, 128 + the signal's number if
// a signal ended it, -1 while it runs.
func (n *Node) ExitCode() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.runningLocked() {
		return -1
	}
	return n.code
}

// Kill ends the process with SIGKILL, like a crash, and waits until it is gone.
func (n *Node) Kill() error {
	if err := n.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-n.Exited()
	return nil
}

// KillAll kills the running ones of the nodes at once, so that none outlives another for
// long, and waits until they are gone.
func KillAll(nodes ...*Node) error {
	var errs []error
	for _, n := range nodes {
		if err := n.Signal(syscall.SIGKILL); !errors.Is(err, ErrNotRunning) {
			errs = append(errs, err)
		}
	}
	for _, n := range nodes {
		if exited := n.Exited(); exited != nil {
			<-exited
		}
	}
	return errors.Join(errs...)
}

// Stop asks the process to end with SIGTERM and waits for it until ctx ends.
func (n *Node) Stop(ctx context.Context) error {
	if err := n.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return n.WaitExit(ctx)
}

// Pause stops the process with SIGSTOP: it does nothing until Continue, and does not
// notice.
func (n *Node) Pause() error { return n.Signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (n *Node) Continue() error { return n.Signal(syscall.SIGCONT) }

// Signal sends sig to the process, by its pid, without waiting for the effect.
func (n *Node) Signal(sig syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.runningLocked() {
		return fmt.Errorf("send %v to %s: %w", sig, n.ID, ErrNotRunning)
	}
	if err := n.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", sig, n.ID, err)
	}
	return nil
}

// WaitExit waits until the process or ctx has ended.
func (n *Node) WaitExit(ctx context.Context) error {
	select {
	case <-n.Exited():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s: %w\n%s", n.ID, context.Cause(ctx), n.LogTail(5))
	}
}

// WaitReady waits until the node says that it is ready. It fails at once when the process
// ends.
func (n *Node) WaitReady(ctx context.Context) error {
	for {
		asking, cancel := context.WithTimeout(ctx, readyTimeout)
		_, err := n.ask(asking, http.MethodGet, "/readyz", nil)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-n.Exited():
			return fmt.Errorf("wait until %s is ready: it ended with exit code %d\n%s", n.ID, n.ExitCode(), n.LogTail(20))
		case <-ctx.Done():
			return fmt.Errorf("wait until %s is ready: %w\n%s", n.ID, context.Cause(ctx), n.LogTail(20))
		case <-time.After(pollInterval):
		}
	}
}

// Output returns all that the node's processes have printed, "" before the
// first start.
func (n *Node) Output() string {
	b, err := os.ReadFile(n.LogPath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err.Error()
	}
	return string(b)
}

// LogTail returns the last lines that the node's processes have printed.
func (n *Node) LogTail(lines int) string {
	all := strings.Split(strings.TrimSpace(n.Output()), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}
