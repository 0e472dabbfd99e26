package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/claimq/claimq/cluster/confirm"
	"github.com/claimq/claimq/cluster/replica"
)

// Parts are the components of a node that OpenParts runs instead of opening its own. Tests
// use it for clusters in memory.
type Parts struct {
	UUID      string // identity of the node
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	Transport raft.Transport // with pre-vote; the node closes it
	// NewTransport creates another transport at the same address after the previous one was
	// closed. If nil, Raft is never restarted.
	NewTransport func() (raft.Transport, error)
	// Servers bootstraps a node without state.
	Servers []raft.Server
	// Clock provides the node's time; nil = the machine's clocks.
	Clock ClockSource
	// Call asks the node at a peer address, leading to that node's Answer. If nil, this node
	// cannot ask others, and a new leader does not compare what it has applied with them.
	Call func(ctx context.Context, addr, name string, body []byte) ([]byte, error)
}

// raftHandle is a node's Raft, which may be restarted while the node runs. Calls in between
// reach the one that was shut down. Its methods are Raft's own.
type raftHandle struct {
	run atomic.Pointer[raftRun]
}

// raftRun is one run of Raft over the node's stores.
type raftRun struct {
	raft      *raft.Raft
	confirmer *confirm.Confirmer
	cancel    context.CancelCauseFunc // ends the waits of its calls, and its snapshot
	ending    atomic.Bool             // it is shutting down, or has shut down
	endErr    error                   // why the shutdown failed; set before ended is closed
	ended     chan struct{}           // closed after the shutdown
}

func newRaftHandle(run *raftRun) *raftHandle {
	h := &raftHandle{}
	h.run.Store(run)
	return h
}

func (h *raftHandle) current() *raft.Raft { return h.run.Load().raft }

// confirmer returns the confirmer of the running Raft.
func (h *raftHandle) confirmer() *confirm.Confirmer { return h.run.Load().confirmer }

func (h *raftHandle) Apply(entry []byte, timeout time.Duration) raft.ApplyFuture {
	return h.current().Apply(entry, timeout)
}

func (h *raftHandle) Barrier(timeout time.Duration) raft.Future { return h.current().Barrier(timeout) }

func (h *raftHandle) VerifyLeader() raft.Future { return h.current().VerifyLeader() }

func (h *raftHandle) Snapshot() raft.SnapshotFuture { return h.current().Snapshot() }

func (h *raftHandle) State() raft.RaftState { return h.current().State() }

func (h *raftHandle) CurrentTerm() uint64 { return h.current().CurrentTerm() }

func (h *raftHandle) CommitIndex() uint64 { return h.current().CommitIndex() }

func (h *raftHandle) LastIndex() uint64 { return h.current().LastIndex() }

// LastContact returns when this node last heard from the leader that it follows. Raft sees only
// some of the heartbeats that the confirmer answers.
func (h *raftHandle) LastContact() time.Time {
	run := h.run.Load()
	contact, answered := run.raft.LastContact(), run.confirmer.LastAnswered()
	if answered.After(contact) {
		return answered
	}
	return contact
}

func (h *raftHandle) LeaderWithID() (raft.ServerAddress, raft.ServerID) {
	return h.current().LeaderWithID()
}

func (h *raftHandle) GetConfiguration() raft.ConfigurationFuture {
	return h.current().GetConfiguration()
}

func (h *raftHandle) ReloadableConfig() raft.ReloadableConfig { return h.current().ReloadableConfig() }

func (h *raftHandle) ReloadConfig(c raft.ReloadableConfig) error {
	return h.current().ReloadConfig(c)
}

func (h *raftHandle) AddVoter(id raft.ServerID, addr raft.ServerAddress, prev uint64, timeout time.Duration) raft.IndexFuture {
	return h.current().AddVoter(id, addr, prev, timeout)
}

func (h *raftHandle) AddNonvoter(id raft.ServerID, addr raft.ServerAddress, prev uint64, timeout time.Duration) raft.IndexFuture {
	return h.current().AddNonvoter(id, addr, prev, timeout)
}

func (h *raftHandle) DemoteVoter(id raft.ServerID, prev uint64, timeout time.Duration) raft.IndexFuture {
	return h.current().DemoteVoter(id, prev, timeout)
}

func (h *raftHandle) RemoveServer(id raft.ServerID, prev uint64, timeout time.Duration) raft.IndexFuture {
	return h.current().RemoveServer(id, prev, timeout)
}

func (h *raftHandle) LeadershipTransferToServer(id raft.ServerID, addr raft.ServerAddress) raft.Future {
	run := h.run.Load()
	return run.answered(run.raft.LeadershipTransferToServer(id, addr))
}

// answered makes a transfer's future end with the run. Raft never answers a transfer that is
// queued when its main loop ends, so the caller would wait forever. The futures have a field
// for that, ShutdownCh, which Raft does not set for transfers.
func (r *raftRun) answered(f raft.Future) raft.Future {
	if v := reflect.ValueOf(f); v.Kind() == reflect.Pointer {
		if end := v.Elem().FieldByName("ShutdownCh"); end.IsValid() && end.CanSet() {
			end.Set(reflect.ValueOf(r.ended))
		}
	}
	return f
}

// errRunEnded is the cause with which a run's contexts end.
var errRunEnded = errors.New("raft is being shut down")

// shutdown ends the run and waits for its goroutines. The transport is closed first,
// because a call to a peer that does not answer would delay the rest. A snapshot being
// written, which takes a minute for 1.5 GB, is abandoned. Another call waits for the first
// and returns the same.
func (r *raftRun) shutdown() error {
	if r.ending.CompareAndSwap(false, true) {
		r.endErr = r.shutdownOnce()
		close(r.ended)
	}
	<-r.ended
	return r.endErr
}

func (r *raftRun) shutdownOnce() error {
	r.cancel(errRunEnded)
	err := r.confirmer.Close()
	if down := r.raft.Shutdown().Error(); down != nil {
		return fmt.Errorf("stop raft: %w", down)
	}
	if err != nil {
		return fmt.Errorf("close transport: %w", err)
	}
	return nil
}

// leftSnapshot reports whether the run, which is over, received a snapshot and put it on
// disk but did not restore it. It then completes what Raft does after restoring: it deletes
// what the snapshot has replaced from the log. Errors: those of the stores.
func (r *raftRun) leftSnapshot(parts Parts) (left bool, err error) {
	snapshots, err := parts.Snapshots.List()
	if err != nil || len(snapshots) == 0 || snapshots[0].Index <= r.raft.AppliedIndex() {
		return false, err
	}
	first, err := parts.Logs.FirstIndex()
	if err != nil {
		return false, err
	}
	last, err := parts.Logs.LastIndex()
	if err != nil {
		return false, err
	}
	if last = min(last, snapshots[0].Index); last > 0 && first <= last {
		err = parts.Logs.DeleteRange(first, last)
	}
	return true, err
}

// raftMaker starts Raft over a node's stores.
type raftMaker struct {
	ctx  context.Context // of the node
	fsm  *replica.Replica
	conf func() *raft.Config
	// leads reports whether this node leads in term and id is a member.
	leads func(term uint64, id raft.ServerID) bool
}

// start starts Raft over the node's stores. before is the previous run over them, or nil:
// the state machine then continues from its state, unless that run has left a snapshot.
func (m *raftMaker) start(parts Parts, transport raft.Transport, before *raftRun) (*raftRun, error) {
	again, restores := before != nil, true
	if again {
		var err error
		if restores, err = before.leftSnapshot(parts); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	wrapped := confirm.Config{HeartbeatTimeout: heartbeatTimeout, Leads: m.leads, Done: ctx.Done()}
	var stored func(index uint64) error
	logs, isLeaderLog := parts.Logs.(leaderLog)
	if isLeaderLog {
		// A Raft that was shut down while it won an election may report forever that it
		// leads.
		logs.LedBy(func() bool { return false })
		logs.AppliedTo(m.fsm.AppliedIndex)
		wrapped.Stored, stored = logs.Stored, logs.AwaitStored
	}
	m.fsm.BeginRun(ctx, stored, again)
	conf := m.conf()
	conf.NoSnapshotRestoreOnStart = !restores
	c := confirm.New(transport, wrapped)
	c.Start()
	r, err := m.newRaft(conf, parts, c)
	if err != nil {
		cancel(err)
		c.Stop()
		return nil, err
	}
	c.Follow(r, parts.Logs)
	if isLeaderLog {
		logs.SnapshotAt(func() uint64 { index, _ := confirm.LastSnapshot(r); return index })
		logs.LedBy(func() bool { return r.State() == raft.Leader })
	}
	return &raftRun{raft: r, confirmer: c, cancel: cancel, ended: make(chan struct{})}, nil
}

// newRaft starts Raft, unless the newest snapshot cannot be restored. Raft by itself would
// continue with an older one: it panics if the log after that has been compacted away, and
// has an old state if it has not.
func (m *raftMaker) newRaft(conf *raft.Config, parts Parts, transport raft.Transport) (r *raft.Raft, err error) {
	defer func() {
		// NewRaft panics when it cannot read back an entry.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if refused := m.fsm.Started(); refused != nil {
			if r != nil {
				err = r.Shutdown().Error()
			}
			r, err = nil, errors.Join(refused, err)
		}
	}()
	r, err = raft.NewRaft(conf, m.fsm, parts.Logs, parts.Stable, parts.Snapshots, transport)
	if log, ok := conf.Logger.(*raftLogger); ok && err == nil {
		r.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool { return log.observe(r, o.Data) }))
	}
	return r, err
}

// raftConfig returns Raft's configuration. Raft's own snapshots are disabled, because type
// snapshots takes them.
func raftConfig(uuid string, logger hclog.Logger) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(uuid)
	c.HeartbeatTimeout = heartbeatTimeout
	c.ElectionTimeout = electionTimeout
	c.LeaderLeaseTimeout = leaderLeaseTimeout
	c.CommitTimeout = commitTimeout
	c.MaxAppendEntries = appendEntriesMax
	c.TrailingLogs = trailingLogsMax
	c.SnapshotInterval = time.Hour
	c.SnapshotThreshold = 1 << 62
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.Logger = newRaftLogger(logger.Named("raft"))
	return c
}

// leaderLog is a log that a leader writes while it sends entries to the others, such as *storage.Log.
type leaderLog interface {
	LedBy(leads func() bool)
	AppliedTo(applied func() uint64)
	SnapshotAt(index func() uint64)
	Stored(index uint64) uint64
	AwaitStored(index uint64) error
}
