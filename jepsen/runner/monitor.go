package runner

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/faults"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

const (
	// sampleInterval is the interval at which each node is asked for its metrics.
	sampleInterval = 250 * time.Millisecond
	sampleTimeout  = time.Second
)

// watch samples each node repeatedly until stop, and records processes that end by
// themselves.
func watch(c *faults.Cluster, rec *recorder.Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	for _, n := range c.Nodes {
		watching.Go(func() { watchNode(ctx, n, rec) })
	}
	return func() {
		cancel()
		watching.Wait()
	}
}

func watchNode(ctx context.Context, n *procs.Node, rec *recorder.Recorder) {
	noted := 0 // process whose end was seen
	for {
		s := history.Sample{At: rec.Now(), Node: n.ID, PID: n.PID()}
		if n.Running() {
			ask(ctx, n, &s)
		} else if s.PID != noted {
			noted = s.PID
			noteExit(n, rec)
		}
		if ctx.Err() != nil {
			return
		}
		rec.Sample(s)
		if !pause.For(ctx, sampleInterval) {
			return
		}
	}
}

// noteExit records a process that ended by itself. Those that were asked to end do so with
// exit code 0; only faults kill.
func noteExit(n *procs.Node, rec *recorder.Recorder) {
	switch code := n.ExitCode(); code {
	case 0, -1, 128 + int(syscall.SIGKILL), 128 + int(syscall.SIGTERM):
	default:
		lines := strings.Split(strings.TrimSpace(n.LogTail(3)), "\n")
		rec.Mark(history.Event{Kind: history.Exited, Node: n.ID, Code: code, Text: lines[len(lines)-1]})
	}
}

// ask fills s with the node's figures.
func ask(ctx context.Context, n *procs.Node, s *history.Sample) {
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
	s.Bytes = max(int64(values["process_resident_memory_bytes"]), n.PeakBytes())
	s.Files = int(values["process_open_fds"])
	s.Goroutines = int(values["go_goroutines"])
	s.Panics = int(values["claimq_http_panics_total"])
}
