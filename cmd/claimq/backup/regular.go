package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cmd/claimq/child"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/pause"
)

const (
	// lookInterval is the time between two checks whether a backup is due, which needs a leader.
	lookInterval = 10 * time.Second
	// retryMax bounds the time until a backup that failed is tried again.
	retryMax = 5 * time.Minute
	// stopMax bounds how long stop waits for a disk that hangs. What is left then is a partial file.
	stopMax = 5 * time.Second
	// partialAge is the age from which an unfinished backup of a process that was killed is removed.
	partialAge = 24 * time.Hour
	// outputMax bounds how much of a command's output is logged: its end.
	outputMax = 2 << 10
	// timeForm is the time in a name, in UTC. Names sort by it.
	timeForm = "20060102T150405Z"
)

// names matches the names that Regular gives: the cluster's id, the time and the index in the log.
var names = regexp.MustCompile(`^claimq-([0-9a-f-]{36})-([0-9]{8}T[0-9]{6}Z)-([0-9]+)\.backup$`)

// Node is the part of a node that backups need.
type Node interface {
	IsLeader() bool
	ClusterID() string
	// SaveBackup captures the state with all that was acknowledged before the call, if stale is false.
	SaveBackup(ctx context.Context, stale bool) (*fsm.Backup, error)
}

// Config configures Regular.
type Config struct {
	Node   Node
	Every  time.Duration // from one backup to the next, at least a minute
	Folder string        // may be shared by all nodes
	Keep   int           // backups of the cluster in the folder, at least 1; older ones are removed
	// Command is an executable file that gets each verified backup as its standard input, to copy it elsewhere.
	// Empty: none. A backup counts only if it succeeds, within Timeout.
	Command  string
	Timeout  time.Duration
	Logger   hclog.Logger
	Registry prometheus.Registerer
}

// Regular takes backups while the node leads. The newest backup in the folder says when the next one is due, so a new
// leader with the same folder continues where the last one stopped; one with its own folder begins with a backup.
type Regular struct {
	Config
	last     prometheus.Gauge
	failures prometheus.Counter
	bytes    prometheus.Gauge
}

// Start takes backups until stop is called.
func Start(c Config) (stop func()) {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		c.Registry.MustRegister(g)
		return g
	}
	r := &Regular{
		Config:   c,
		last:     gauge("claimq_backup_last_success_timestamp_seconds", "Time of the newest regular backup that this node knows of; 0: none."),
		bytes:    gauge("claimq_backup_bytes", "Size of the last regular backup that this node has taken."),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "claimq_backup_failures_total", Help: "Regular backups that this node could not take."}),
	}
	c.Registry.MustRegister(r.failures)
	gauge("claimq_backup_interval_seconds", "The setting backup.every.").Set(c.Every.Seconds())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.run(ctx)
	}()
	return func() {
		cancel()
		timer := time.NewTimer(stopMax)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
}

func (r *Regular) run(ctx context.Context) {
	for wait := time.Duration(0); pause.For(ctx, wait); {
		wait = pause.Beat(lookInterval)
		last := r.newest()
		if !last.IsZero() {
			r.last.Set(float64(last.Unix()))
		}
		if !r.Node.IsLeader() || time.Since(last) < r.Every {
			continue
		}
		if err := r.take(ctx); err != nil && ctx.Err() == nil {
			r.failures.Inc()
			wait = min(r.Every, retryMax)
			r.Logger.Error("no backup was taken, trying again", "in", wait, "last", last, "error", err)
		}
	}
}

// newest returns the time of the cluster's newest backup in the folder; zero without one, or if the folder cannot be
// read.
func (r *Regular) newest() (at time.Time) {
	entries, _ := os.ReadDir(r.Folder) // taking a backup will say what is wrong
	for _, b := range r.ours(entries) {
		if b.at.After(at) {
			at = b.at
		}
	}
	return at
}

// saved is a backup in the folder.
type saved struct {
	name  string
	index uint64
	at    time.Time // zero if that is so far ahead that the clock was wrong
}

// ours returns the cluster's backups, the oldest first by the log, because a clock may have been wrong.
func (r *Regular) ours(entries []os.DirEntry) (all []saved) {
	for _, e := range entries {
		m := names.FindStringSubmatch(e.Name())
		if m == nil || m[1] != r.Node.ClusterID() {
			continue
		}
		at, timeErr := time.Parse(timeForm, m[2])
		index, indexErr := strconv.ParseUint(m[3], 10, 64)
		if timeErr != nil || indexErr != nil {
			continue
		}
		if time.Until(at) > r.Every {
			at = time.Time{}
		}
		all = append(all, saved{e.Name(), index, at})
	}
	slices.SortFunc(all, func(a, b saved) int { return cmp.Or(cmp.Compare(a.index, b.index), a.at.Compare(b.at)) })
	return all
}

// take takes one backup, and removes older ones once it has its name.
func (r *Regular) take(ctx context.Context) error {
	began := time.Now()
	captured, err := r.Node.SaveBackup(ctx, false)
	if err != nil {
		return err
	}
	p, err := Write(r.Folder, "claimq", captured.WriteTo)
	captured.Release()
	if err != nil {
		return err
	}
	created := time.UnixMilli(p.Info.CreatedAt).UTC()
	name := fmt.Sprintf("claimq-%s-%s-%d.backup", p.Info.ClusterID, created.Format(timeForm), p.Info.Index)
	if r.Command != "" {
		if err := r.hand(ctx, p, name); err != nil {
			return errors.Join(fmt.Errorf("backup.command: %w", err), p.Remove())
		}
	}
	if err := p.Name(name); err != nil {
		return err
	}
	r.last.Set(float64(created.Unix()))
	r.bytes.Set(float64(p.Size))
	r.Logger.Info("took a backup", "file", filepath.Join(r.Folder, name), "index", p.Info.Index, "bytes", p.Size, "took", time.Since(began).Round(time.Millisecond))
	r.tidy()
	return nil
}

// hand gives the backup to the command, and waits for it. The command is ended with its process group when its time
// is over.
func (r *Regular) hand(ctx context.Context, p *Partial, name string) error {
	in, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer in.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, r.Timeout, fmt.Errorf("it took over %v", r.Timeout))
	defer cancel()
	var out tail
	cmd := exec.CommandContext(ctx, r.Command)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &out
	cmd.Env = append(os.Environ(), "CLAIMQ_BACKUP_NAME="+name, fmt.Sprintf("CLAIMQ_BACKUP_BYTES=%d", p.Size))
	cmd.SysProcAttr, cmd.WaitDelay = child.Attr(), child.PipeGrace
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	runtime.LockOSThread() // for child.Attr
	err = cmd.Run()
	runtime.UnlockOSThread()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%w: %s", err, out.text())
	}
	return nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b[max(0, len(b)-outputMax):]...)
	t.b = t.b[max(0, len(t.b)-outputMax):]
	return len(b), nil
}

func (t *tail) text() string { return strings.ToValidUTF8(string(bytes.TrimSpace(t.b)), "?") }

// tidy removes the cluster's backups beyond Keep, the oldest first, and what killed processes have left.
func (r *Regular) tidy() {
	entries, err := os.ReadDir(r.Folder)
	for _, e := range entries {
		if ok, _ := filepath.Match("claimq"+PartialPattern, e.Name()); ok {
			if info, infoErr := e.Info(); infoErr == nil && time.Since(info.ModTime()) > partialAge {
				err = errors.Join(err, os.Remove(filepath.Join(r.Folder, e.Name())))
			}
		}
	}
	all := r.ours(entries)
	for _, b := range all[:max(0, len(all)-r.Keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(r.Folder, b.name)))
	}
	if err != nil {
		r.Logger.Warn("old backups could not be removed", "error", err)
	}
}
