package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// crashCase is one crash, right after a change of a disk.
type crashCase struct {
	at   int    // changes so far
	what string // the last one
	// lose are the nodes whose disks lose unsynced data; the processes of the others are
	// killed at the same moment.
	lose []int
	torn bool // a part of it survives
}

func (c crashCase) String() string {
	return fmt.Sprintf("after change %d (%s), nodes %v lose what was not synced, torn %v", c.at, c.what, c.lose, c.torn)
}

// crashSets returns the sets of nodes that lose power together: one node, the leader, a
// majority, all.
func crashSets(nodes, leader int) [][]int {
	all := make([]int, nodes)
	for i := range all {
		all[i] = i
	}
	if nodes == 1 {
		return [][]int{all}
	}
	follower := (leader + 1) % nodes
	majority := []int{leader}
	for i := 1; len(majority) <= nodes/2; i++ {
		majority = append(majority, (leader+i)%nodes)
	}
	return [][]int{{follower}, {leader}, majority, all}
}

// crashCases calls try for every crash of the run: after each sync of a node's disk with
// unsynced data lost, after each other change with a torn part of it left, each for every
// set of nodes that contains the node; and after each change with nothing lost, which is
// kill -9. One of every cases is tried, with the replay at its moment.
func crashCases(t *testing.T, r *crashRun, every int, try func(*lossyfs.Replay, crashCase)) {
	t.Helper()
	replay, count := r.journal.Replay(), 0
	sets := crashSets(len(r.procs.Nodes), r.leader)
	for {
		change, ok, err := replay.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		if replay.At() <= r.from || change.Fills {
			continue
		}
		cases := []crashCase{{at: replay.At(), what: change.What}}
		for _, set := range sets {
			if slices.Contains(set, change.Disk) {
				cases = append(cases, crashCase{at: replay.At(), what: change.What, lose: set, torn: !change.Sync})
			}
		}
		for _, c := range cases {
			if count++; count%every == 0 {
				try(replay, c)
			}
		}
	}
}

// crashJudge starts the nodes from the disks after a crash, and checks them.
type crashJudge struct {
	t     *testing.T
	run   *crashRun
	crash crashCase
	mend  func(dir string) error
	logs  hclog.Logger

	transports map[raft.ServerAddress]*raft.InmemTransport
	nodes      map[raft.ServerAddress]*cluster.Node
	uuids      map[string]*cluster.Node
	folders    []io.Closer // of the nodes, each behind its stores
}

// judgeCrash fails the test if the nodes do not come back with everything that was
// acknowledged before the crash.
func judgeCrash(t *testing.T, r *crashRun, replay *lossyfs.Replay, c crashCase, mend func(string) error) {
	t.Helper()
	dir := memoryDir(t)
	defer func() { _ = os.RemoveAll(dir) }()
	for i := range r.procs.Nodes {
		var torn *rand.Rand
		if c.torn {
			torn = rand.New(rand.NewSource(int64(c.at)))
		}
		if err := replay.Image(i, filepath.Join(dir, fmt.Sprint(i)), slices.Contains(c.lose, i), torn); err != nil {
			t.Fatal(err)
		}
	}
	logs := &nodesLog{}
	failed := func(err any) { t.Errorf("%v: %v\n%s", c, err, logs) }
	synctest.Test(t, func(t *testing.T) {
		j := &crashJudge{
			t: t, run: r, crash: c, mend: mend, transports: map[raft.ServerAddress]*raft.InmemTransport{},
			nodes: map[raft.ServerAddress]*cluster.Node{}, uuids: map[string]*cluster.Node{},
			logs: hclog.New(&hclog.LoggerOptions{Output: logs, Level: hclog.Info, DisableTime: true}),
		}
		defer j.close()
		if err := j.start(dir); err != nil {
			failed(err)
			return
		}
		if err := j.judge(); err != nil {
			failed(err)
		}
	})
}

// start starts the nodes that were in a cluster before the crash.
func (j *crashJudge) start(dir string) error {
	for i := range j.run.procs.Nodes {
		path := filepath.Join(dir, fmt.Sprint(i), crashFolder)
		if j.mend != nil {
			if i != j.run.leader {
				continue
			}
			if err := j.mend(path); err != nil {
				return err
			}
		}
		if err := j.startNode(i, path); err != nil {
			return fmt.Errorf("start node %d: %w", i, err)
		}
	}
	return nil
}

func (j *crashJudge) startNode(i int, path string) error {
	id, ok, err := storage.ReadIdentity(path)
	if err != nil || !ok || id.ClusterID == "" {
		return err // it never knew of a cluster, so nothing was promised
	}
	dir, err := storage.OpenDir(path, id.NodeID)
	if err != nil {
		return err
	}
	// It may hold locks, so nothing can continue from here.
	fatal := func(err error) { panic(fmt.Sprintf("%v: node %d ends itself: %v", j.crash, i, err)) }
	s, err := storage.Open(dir, storage.Config{Fatal: fatal, Logger: j.logs.Named(id.NodeID)})
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	j.folders = append(j.folders, s, dir)
	if has, err := s.HasState(); err != nil || !has {
		return err
	}
	addr := raft.ServerAddress(j.run.procs.Nodes[i].PeerAddr)
	cfg := cluster.DefaultConfig()
	cfg.NodeID, cfg.HTTPAdvertise, cfg.Logger, cfg.Fatal = id.NodeID, "http://"+id.NodeID, j.logs.Named(id.NodeID), fatal
	cfg.Registerer = prometheus.NewRegistry()
	parts := cluster.Parts{
		UUID: id.UUID, Logs: s.Log, Stable: s.Stable, Snapshots: s.Snapshots,
		Transport: j.transport(addr), NewTransport: func() (raft.Transport, error) { return j.transport(addr), nil },
		Call: func(ctx context.Context, to, name string, body []byte) ([]byte, error) {
			if n := j.nodes[raft.ServerAddress(to)]; n != nil {
				return n.Answer(ctx, name, body)
			}
			return nil, errors.New("nobody is there")
		},
	}
	n, err := cluster.OpenParts(cfg, parts)
	if err != nil {
		return err
	}
	j.nodes[addr], j.uuids[id.UUID] = n, n
	return nil
}

// transport returns another transport at the address that reaches all others.
func (j *crashJudge) transport(addr raft.ServerAddress) raft.Transport {
	_, tr := raft.NewInmemTransportWithTimeout(addr, 3*time.Second)
	for other, to := range j.transports {
		if other != addr {
			tr.Connect(other, to)
			to.Connect(addr, tr)
		}
	}
	j.transports[addr] = tr
	return tr
}

// nodesLog collects the nodes' logs.
type nodesLog struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write takes a line of a node's logger, with the virtual time before it.
func (l *nodesLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprint(&l.text, time.Now().Format("05.000000 "))
	return l.text.Write(b)
}

func (l *nodesLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// memoryDir creates a folder in memory if there is such a file system, because nothing here
// tests the disk itself.
func memoryDir(t *testing.T) string {
	t.Helper()
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = os.TempDir()
	}
	dir, err := os.MkdirTemp(parent, "claimq-crash-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// crashServeMax bounds the virtual time until the cluster serves.
const crashServeMax = time.Minute

// judge checks that the cluster serves and has everything that was acknowledged before.
func (j *crashJudge) judge() error {
	if 2*len(j.nodes) <= len(j.run.procs.Nodes) && j.mend == nil {
		return j.nothingPromised() // most have never been in a cluster
	}
	leader, err := j.serving()
	if err != nil {
		return err
	}
	var wrong []error
	var last uint64
	_, err = leader.ReadLinearizable(context.Background(), 0, func(m *fsm.Machine, _ fsm.Stamp) {
		for _, f := range j.run.facts {
			if f.at > j.crash.at {
				continue
			}
			if err := f.holds(m); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", f.what, err))
			}
		}
	})
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for _, t := range j.run.tokens {
		if t.at <= j.crash.at {
			last = max(last, t.token)
		}
	}
	return errors.Join(append(wrong, j.goesOn(leader, last))...)
}

func (j *crashJudge) nothingPromised() error {
	for _, f := range j.run.facts {
		if f.at <= j.crash.at {
			return fmt.Errorf("%d nodes have data, and %s", len(j.nodes), f.what)
		}
	}
	return nil
}

// serving waits for a leader that has written an entry of its term.
func (j *crashJudge) serving() (*cluster.Node, error) {
	for deadline := time.Now().Add(crashServeMax); time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
		for _, n := range j.nodes {
			if !n.IsLeader() {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			_, err := n.Propose(ctx, command.Submit{Tasks: []fsm.NewTask{{Type: "after", Params: []byte("1"), Key: "after the crash"}}})
			cancel()
			if err == nil {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("nobody serves after %s of virtual time", crashServeMax)
}

// goesOn claims a task, whose token must be above all earlier ones, and compares the nodes'
// states.
func (j *crashJudge) goesOn(leader *cluster.Node, last uint64) error {
	got, err := leader.Propose(context.Background(), command.ClaimNext{WorkerID: "after", Types: []string{"after"}, Limit: 1, LeaseMS: 60_000, SortBy: command.SortCreatedAt})
	switch {
	case err != nil:
		return fmt.Errorf("claim: %w", err)
	case len(got.Result.Claims) != 1 || got.Result.Claims[0].Token <= last:
		return fmt.Errorf("a claim gets %+v, token %d was handed out before", got.Result.Claims, last)
	}
	for deadline := time.Now().Add(crashServeMax); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		hashes := map[[16]byte]bool{}
		var at uint64
		level := true
		for _, n := range j.members(leader) {
			index, hash := n.StateHash()
			if at == 0 {
				at = index
			}
			level = level && index == at && index >= got.Index
			hashes[hash] = true
		}
		switch {
		case level && len(hashes) == 1:
			return nil
		case level:
			return fmt.Errorf("the nodes' states differ at index %d", at)
		}
	}
	return fmt.Errorf("the nodes are not level after %s of virtual time", crashServeMax)
}

// members returns the started nodes that are members according to the leader.
func (j *crashJudge) members(leader *cluster.Node) []*cluster.Node {
	var out []*cluster.Node
	for _, of := range leader.Cluster(context.Background()).Nodes {
		if n := j.uuids[of.UUID]; n != nil {
			out = append(out, n)
		}
	}
	return out
}

func (j *crashJudge) close() {
	var errs []error
	for _, n := range j.nodes {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // no leadership is transferred
		errs = append(errs, n.Close(ctx))
	}
	for _, f := range j.folders {
		errs = append(errs, f.Close())
	}
	if err := errors.Join(errs...); err != nil {
		j.t.Error(err)
	}
	<-time.After(time.Minute) // timers of Raft's goroutines that are left behind
}
