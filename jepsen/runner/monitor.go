package runner

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/procs"
	"github.com/claimq/claimq/jepsen/recorder"
)

const (
	// sampleInterval is how often each node is asked for its metrics.
	sampleInterval = 250 * time.Millisecond
	sampleTimeout  = time.Second
)

// monitor asks each node how it is, again and again, and notes processes that
// end by themselves.
type monitor struct {
	cluster *faults.Cluster
	rec     *recorder.Recorder
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	mu   sync.Mutex
	last map[string]history.Sample // guarded by mu
}

// watch starts a monitor. The caller stops it.
func watch(c *faults.Cluster, rec *recorder.Recorder) *monitor {
	ctx, cancel := context.WithCancel(context.Background())
	m := &monitor{cluster: c, rec: rec, cancel: cancel, last: map[string]history.Sample{}}
	for _, n := range c.Nodes() {
		m.wait.Go(func() { m.run(ctx, n) })
	}
	return m
}

func (m *monitor) stop() {
	m.cancel()
	m.wait.Wait()
}

func (m *monitor) run(ctx context.Context, n *procs.Node) {
	noted := 0 // process whose end was looked at
	for {
		s := history.Sample{At: m.rec.Now(), Node: n.ID, PID: n.PID()}
		if n.Running() {
			m.ask(ctx, n, &s)
		} else if s.PID != noted {
			noted = s.PID
			m.noteExit(n)
		}
		if ctx.Err() != nil {
			return
		}
		m.rec.Sample(s)
		m.mu.Lock()
		m.last[n.ID] = s
		m.mu.Unlock()
		if !pause.For(ctx, sampleInterval) {
			return
		}
	}
}

// noteExit notes a process that ended by itself. Those that were asked to end
// do so with exit code 0; only faults kill.
func (m *monitor) noteExit(n *procs.Node) {
	switch code := n.ExitCode(); code {
	case 0, -1, 128 + int(syscall.SIGKILL), 128 + int(syscall.SIGTERM):
	default:
		lines := strings.Split(strings.TrimSpace(n.LogTail(3)), "\n")
		m.rec.Mark(history.Event{Kind: history.Exited, Node: n.ID, Code: code, Text: lines[len(lines)-1]})
	}
}

// ask fills s with what the node says of itself.
func (m *monitor) ask(ctx context.Context, n *procs.Node, s *history.Sample) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	values, err := n.Metrics(ctx)
	if err != nil {
		return
	}
	s.Up = true
	s.Leads = values["claimq_raft_leader"] == 1
	s.Term = uint64(values["claimq_raft_term"])
	s.Index = uint64(values["claimq_raft_applied_index"])
	s.Bytes = int64(values["process_resident_memory_bytes"])
	s.Files = int(values["process_open_fds"])
	s.Goroutines = int(values["go_goroutines"])
	s.Panics = int(values["claimq_http_panics_total"])
}

// waitLevel waits until all nodes stand at the same index.
func (m *monitor) waitLevel(ctx context.Context) error {
	for {
		said := m.said()
		if said == "" {
			return nil
		}
		if !pause.For(ctx, sampleInterval) {
			return fmt.Errorf("%w: %s", context.Cause(ctx), said)
		}
	}
}

// said says where the nodes stand, "" if all are up at one index.
func (m *monitor) said() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	level := true
	first := m.last[m.cluster.Nodes()[0].ID]
	var all []string
	for _, n := range m.cluster.Nodes() {
		s := m.last[n.ID]
		level = level && s.Up && s.Index == first.Index
		all = append(all, fmt.Sprintf("%s up=%v index=%d", n.ID, s.Up, s.Index))
	}
	if level {
		return ""
	}
	return strings.Join(all, ", ")
}
