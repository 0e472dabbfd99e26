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
	// ErrRunning is returned when a node is started that runs already.
	ErrRunning = errors.New("the node runs already")
	// ErrNotRunning is returned when something is asked of a node that does not
	// run.
	ErrNotRunning = errors.New("the node does not run")
)

// pollInterval is how often a condition of a node is looked at.
const pollInterval = 10 * time.Millisecond

// readyTimeout bounds one question whether a node is ready.
const readyTimeout = time.Second

// Node is one claimq server: its folder, ports and flags, and the process that
// serves them, if it runs. It is safe for concurrent use.
type Node struct {
	ID       string // node id, n1, n2, ...
	DataDir  string
	LogPath  string // what its processes print, one after the other
	HTTPAddr string
	PeerAddr string
	// Args are the arguments of the binary. Change them only while it does not
	// run.
	Args []string

	binary string
	env    []string
	host   Host        // nil: this machine
	dial   DialFunc    // nil: an ordinary dialer
	tls    *tls.Config // nil: the API speaks plain HTTP
	key    string      // API key, "" if the node is open
	pipes  bool        // it prints to a pipe
	joins  bool        // it does not belong to the initial cluster

	tokenFile string // of the join token that it may join by

	mu     sync.Mutex // guards what follows
	files  int        // that a process may open, 0 = as many as this one
	pipe   *pipe      // of the last start, nil: it prints to a file
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

// SetFlag gives the flag another value from the next start on.
func (n *Node) SetFlag(flag, value string) {
	if i := slices.Index(n.Args, flag); i >= 0 && i+1 < len(n.Args) {
		n.Args[i+1] = value
		return
	}
	n.Args = append(n.Args, flag, value)
}

// JoinBy lets the node join the cluster of the nodes with these peer addresses from the
// next start on, if its folder is empty then: by the token of SetJoinToken.
func (n *Node) JoinBy(peerAddrs []string) {
	for _, flag := range []string{"--initial-cluster", "--join"} {
		if i := slices.Index(n.Args, flag); i >= 0 {
			n.Args = slices.Delete(n.Args, i, i+2)
		}
	}
	n.Args = append(n.Args, "--join", strings.Join(peerAddrs, ","))
	n.SetFlag("--join-token-file", n.tokenFile)
}

// NewJoinToken returns a join token and the body of the call, POST
// /api/cluster/tokens, that makes it, good for one node.
func NewJoinToken() (token, body string) {
	token = rand.Text()
	return token, fmt.Sprintf(`{"token_sha256":"%x","expires_in_ms":3600000}`, sha256.Sum256([]byte(token)))
}

// SetJoinToken gives the node the join token that it joins by.
func (n *Node) SetJoinToken(token string) error {
	return os.WriteFile(n.tokenFile, []byte(token+"\n"), 0o600)
}

// SetBinary lets the node run another binary from the next start on.
func (n *Node) SetBinary(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.binary = path
}

// SetFiles bounds the files that the node may open from the next start on; 0 is no bound of
// its own.
func (n *Node) SetFiles(most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.files = most
}

// Wipe empties the node's folder, as a new disk is, while it does not run.
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
	// Not as seldom as who starts it collects garbage: as a server does.
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

// await collects the exit code. It ends when the process does, and whoever
// ends the process waits for exited.
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

// Running reports whether the process runs (or is paused).
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

// Exited returns a channel that is closed once the process of the last start
// has ended, nil before the first.
func (n *Node) Exited() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.exited
}

// ExitCode returns how the process of the last start ended, 128 + the signal's
// number if a signal ended it, -1 while it runs.
func (n *Node) ExitCode() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil || n.runningLocked() {
		return -1
	}
	return n.code
}

// Kill ends the process with SIGKILL, as a crash does, and waits until it is
// gone.
func (n *Node) Kill() error {
	if err := n.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-n.Exited()
	return nil
}

// KillAll kills those of the nodes that run at once, so that none outlives another for
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

// Pause stops the process with SIGSTOP: it does nothing until Continue, and
// does not know it.
func (n *Node) Pause() error { return n.Signal(syscall.SIGSTOP) }

// Continue ends a Pause.
func (n *Node) Continue() error { return n.Signal(syscall.SIGCONT) }

// Signal sends sig to the process, by its pid, and does not wait for what
// comes of it.
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

// WaitExit waits until the process has ended, or ctx.
func (n *Node) WaitExit(ctx context.Context) error {
	select {
	case <-n.Exited():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s: %w\n%s", n.ID, context.Cause(ctx), n.LogTail(5))
	}
}

// WaitReady waits until the node says that it is ready. It fails at once when
// the process ends.
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
