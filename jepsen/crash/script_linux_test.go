package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cluster/storage"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/jepsen/lossyfs"
)

// crashScript is something that happens to a cluster of real processes while every change
// of its disks is recorded.
type crashScript struct {
	name  string
	nodes int
	joins int  // of these, the last ones, which are not in the cluster at first
	newer bool // r.newer is a build that knows one feature level more
	brief bool // the nodes keep little log after a snapshot, in small segments
	play  func(r *crashRun)
	// mend, if not nil, does what an operator would do to the old leader's folder before
	// that node is started again; the others stay down.
	mend func(dir string) error
}

// crashScripts returns scripts of what nodes go through in their lives. Crashes are judged
// from where a script calls judged, or from the first change on if it does not.
func crashScripts() []crashScript {
	return []crashScript{
		{name: "load", nodes: 3, play: playLoad},
		{name: "alone", nodes: 1, play: playLoad},
		{name: "snapshot", nodes: 3, play: playSnapshot},
		{name: "compaction", nodes: 3, brief: true, play: playCompaction},
		{name: "vote", nodes: 3, play: playVote},
		{name: "transfer", nodes: 3, play: playTransfer},
		{name: "truncation", nodes: 3, play: playTruncation},
		{name: "join", nodes: 4, joins: 1, play: playJoin},
		{name: "remove", nodes: 3, play: playRemove},
		{name: "restore", nodes: 3, play: playRestore},
		{name: "recover", nodes: 3, play: playRecover, mend: recoverAgain},
		{name: "upgrade", nodes: 3, newer: true, play: playUpgrade},
	}
}

// crashRun is a script that is being played, and the known facts.
type crashRun struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	binary  string
	newer   string // as crashScript.newer says
	journal *lossyfs.Journal
	procs   *procs.Cluster
	client  *http.Client

	// from is the first change that is judged; leader the index of the leader then.
	from, leader int
	facts        []crashFact
	tokens       []crashToken
}

// crashFact is something that was acknowledged, and must hold in every later state.
type crashFact struct {
	at    int // changes of the disks by then
	what  string
	holds func(m *fsm.Machine) error
}

// crashToken is a claim token that was given out.
type crashToken struct {
	at    int
	token uint64
}

// crashPatience bounds the playing of a script.
const crashPatience = 10 * time.Minute

// recordCrash plays the script on real processes, over disks that record every change.
func recordCrash(t *testing.T, s crashScript, binary string) *crashRun {
	t.Helper()
	r := &crashRun{t: t, dir: t.TempDir(), binary: binary, journal: &lossyfs.Journal{}, client: &http.Client{Timeout: 30 * time.Second}}
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(t.Context(), crashPatience)
	t.Cleanup(cancel)
	cfg := procs.Config{Binary: binary, Dir: r.dir, Nodes: s.nodes, Joining: s.joins}
	var err error
	switch {
	case s.newer:
		r.newer, err = procs.BuildNext(r.ctx, t.TempDir(), fsm.FeatureLevel()-1)
	case s.brief:
		cfg.Binary, err = briefLog.Build(r.ctx, t.TempDir())
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.nodes {
		disk, err := lossyfs.New(filepath.Join(r.dir, fmt.Sprintf("disk%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = disk.Close() })
		disk.Record(r.journal, i)
		cfg.DataDirs = append(cfg.DataDirs, filepath.Join(disk.Dir(), crashFolder))
	}
	if r.procs, err = procs.Start(r.ctx, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.procs.Close)
	s.play(r)
	r.procs.Close()
	return r
}

// crashFolder is the data folder on each disk.
const crashFolder = "data"

// judged marks the point from which on crashes are judged.
func (r *crashRun) judged() {
	r.t.Helper()
	leader := r.waitLeader()
	r.leader = slices.Index(r.procs.Nodes, leader)
	r.from = r.journal.Len()
}

func (r *crashRun) waitLeader(except ...*procs.Node) *procs.Node {
	r.t.Helper()
	n, err := r.procs.WaitLeader(r.ctx, except...)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := n.WaitReady(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// follower returns a running node that does not lead.
func (r *crashRun) follower() *procs.Node {
	leader := r.waitLeader()
	for _, n := range r.procs.Nodes {
		if n != leader && n.Running() {
			return n
		}
	}
	r.t.Fatal("there is no follower")
	return nil
}

// know records a fact that holds from now on.
func (r *crashRun) know(what string, holds func(m *fsm.Machine) error) {
	r.facts = append(r.facts, crashFact{at: r.journal.Len(), what: what, holds: holds})
}

// call calls the node's API and returns the answer's body.
func (r *crashRun) call(n *procs.Node, method, path, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(r.ctx, method, n.URL()+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// must calls the leader until it succeeds, and decodes the answer into out. The call must
// be safe to repeat.
func (r *crashRun) must(method, path, body string, out any) {
	r.t.Helper()
	for {
		status, answer, err := r.call(r.waitLeader(), method, path, body)
		if err == nil && status/100 == 2 {
			if err := json.Unmarshal(answer, out); err != nil {
				r.t.Fatal(err)
			}
			return
		}
		if err == nil && status/100 == 4 || r.ctx.Err() != nil {
			r.t.Fatalf("%s %s: %d %s %v", method, path, status, answer, err)
		}
	}
}

type crashTask struct {
	Task struct {
		ID    uint64 `json:"id"`
		Token uint64 `json:"claim_token"`
	} `json:"task"`
}

// submit submits a task whose key is its name, with params of that size.
func (r *crashRun) submit(name string, size int) uint64 {
	r.t.Helper()
	var out crashTask
	r.must(http.MethodPost, "/api/tasks", fmt.Sprintf(`{"task_type": "mail", "params": %q, "idempotency_key": %q}`, strings.Repeat("x", size), name), &out)
	id := out.Task.ID
	r.know(fmt.Sprintf("task %d has the key %s", id, name), func(m *fsm.Machine) error {
		if have := m.ByKey(name); have == nil || have.ID != id {
			return fmt.Errorf("the key has %v", have)
		}
		return nil
	})
	return id
}

// claim claims the oldest task.
func (r *crashRun) claim() (id, token uint64) {
	r.t.Helper()
	var out crashTask
	r.must(http.MethodPost, "/api/tasks/claim", fmt.Sprintf(`{"worker_id": "w", "lease_ms": 600000, "claim_request_id": "%d"}`, len(r.tokens)), &out)
	id, token = out.Task.ID, out.Task.Token
	r.tokens = append(r.tokens, crashToken{at: r.journal.Len(), token: token})
	r.know(fmt.Sprintf("task %d has been claimed with token %d", id, token), func(m *fsm.Machine) error {
		if t := m.Get(id); t == nil || t.Status == fsm.StatusPending || t.Token > token {
			return fmt.Errorf("the task is %+v", t)
		}
		return nil
	})
	return id, token
}

func (r *crashRun) complete(id, token uint64) {
	r.t.Helper()
	r.must(http.MethodPost, fmt.Sprintf("/api/tasks/%d/complete", id), fmt.Sprintf(`{"worker_id": "w", "claim_token": %d}`, token), &crashTask{})
	r.know(fmt.Sprintf("task %d is completed", id), func(m *fsm.Machine) error {
		if t := m.Get(id); t == nil || t.Status != fsm.StatusCompleted {
			return fmt.Errorf("the task is %+v", t)
		}
		return nil
	})
}

// work does a little of everything.
func (r *crashRun) work(name string) {
	r.t.Helper()
	r.submit(name+" a", 10)
	r.submit(name+" b", 5000)
	id, token := r.claim()
	r.submit(name+" c", 10)
	r.complete(id, token)
	r.claim()
}

func playLoad(r *crashRun) { r.work("1"); r.judgedFromTheStart(); r.work("2") }

// judgedFromTheStart judges everything, including the first start and the first election.
func (r *crashRun) judgedFromTheStart() { r.leader = slices.Index(r.procs.Nodes, r.waitLeader()) }

func playSnapshot(r *crashRun) {
	r.work("1")
	r.judged()
	r.snapshot()
	r.work("2")
	r.snapshot()
	r.work("3")
}

// snapshot lets every node write a snapshot.
func (r *crashRun) snapshot() {
	r.t.Helper()
	r.must(http.MethodPost, "/api/snapshots", "", &struct{}{})
}

// briefKept is the number of entries that briefLog keeps behind a snapshot.
const briefKept = 16

// briefLog edits the source so that nodes drop most of a short log: the product keeps so
// much that replaying it after every crash would take hours.
var briefLog = procs.Edited{Name: "brief", Edits: []procs.Edit{
	{File: "cluster/config.go", Old: "	trailingLogsMax = 10_240\n", New: fmt.Sprintf("	trailingLogsMax = %d\n", briefKept)},
	{File: "cluster/storage/walstore.go", Old: "	walSegmentBytes = 16 << 20\n", New: "	walSegmentBytes = 16 << 10\n"},
}}

// playCompaction repeatedly makes enough log for a snapshot to drop the beginning of it.
func playCompaction(r *crashRun) {
	fill := func(name string) {
		for i := range 3 * briefKept {
			r.submit(fmt.Sprint(name, i), 2000)
		}
	}
	fill("before ")
	r.judged()
	r.snapshot()
	first := r.checkDropped(1)
	r.work("1")
	fill("between ")
	r.snapshot()
	r.checkDropped(first)
	r.work("2")
}

// checkDropped fails the test unless every node's log begins after the index. It returns
// the highest of their first indexes.
func (r *crashRun) checkDropped(index uint64) (last uint64) {
	r.t.Helper()
	must := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	replay := r.journal.Replay()
	for ok := true; ok; {
		var err error
		_, ok, err = replay.Next()
		must(err)
	}
	for i, n := range r.procs.Nodes {
		path := r.t.TempDir()
		must(replay.Image(i, path, false, nil))
		dir, err := storage.OpenDir(filepath.Join(path, crashFolder), n.ID)
		must(err)
		s, err := storage.Open(dir, storage.Config{Fatal: func(err error) { panic(err) }})
		must(err)
		first, err := s.Log.FirstIndex()
		must(errors.Join(err, s.Close(), dir.Close()))
		if first <= index {
			r.t.Fatalf("the log of %s begins at %d: nothing up to %d was dropped", n.ID, first, index)
		}
		last = max(last, first)
	}
	return last
}

// playVote kills the leader: the others vote, and the old one comes back.
func playVote(r *crashRun) {
	r.work("1")
	r.judged()
	old := r.waitLeader()
	r.kill(old)
	r.waitLeader(old)
	r.work("2")
	r.start(old)
	r.work("3")
}

func (r *crashRun) kill(n *procs.Node) {
	r.t.Helper()
	if err := n.Kill(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *crashRun) start(n *procs.Node) {
	r.t.Helper()
	if err := n.Start(); err != nil {
		r.t.Fatal(err)
	}
	if err := n.WaitReady(r.ctx); err != nil {
		r.t.Fatal(err)
	}
}

func playTransfer(r *crashRun) {
	r.work("1")
	r.judged()
	r.must(http.MethodPost, "/api/cluster/transfer", "", &struct{}{})
	r.work("2")
}

// playTruncation leaves entries in the log of a leader that the other nodes lack.
func playTruncation(r *crashRun) {
	r.work("1")
	r.judged()
	old := r.waitLeader()
	var others []*procs.Node
	for _, n := range r.procs.Nodes {
		if n != old {
			others = append(others, n)
		}
	}
	r.signal(syscall.SIGSTOP, others...)
	before := r.journal.Len()
	lost, cancel := context.WithCancel(r.ctx)
	answered := make(chan struct{})
	go func() { // it is never answered
		defer close(answered)
		req, err := http.NewRequestWithContext(lost, http.MethodPost, old.URL()+"/api/tasks", bytes.NewReader([]byte(`{"task_type": "lost", "params": 1}`)))
		if err == nil {
			if resp, err := r.client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}()
	testwait.Until(r.t, "the entry to be on the old leader's disk", func() bool { return r.journal.Len() >= before+2 })
	r.kill(old)
	cancel()
	<-answered
	r.signal(syscall.SIGCONT, others...)
	r.waitLeader(old)
	r.work("2")
	r.start(old)
	r.work("3")
}

func (r *crashRun) signal(s syscall.Signal, nodes ...*procs.Node) {
	r.t.Helper()
	for _, n := range nodes {
		if err := n.Signal(s); err != nil {
			r.t.Fatal(err)
		}
	}
}

// playJoin lets a fourth node join and get a vote.
func playJoin(r *crashRun) {
	r.work("1")
	r.judged()
	last := r.procs.Nodes[len(r.procs.Nodes)-1]
	token, body := procs.NewJoinToken()
	r.must(http.MethodPost, "/api/cluster/tokens", body, &struct{}{})
	if err := last.SetJoinToken(token); err != nil {
		r.t.Fatal(err)
	}
	r.start(last)
	testwait.Until(r.t, "it to get a vote", func() bool {
		view, err := procs.View(r.ctx, r.waitLeader())
		if err != nil {
			return false
		}
		for _, n := range view.Nodes {
			if n.NodeID == last.ID {
				return n.Suffrage == "voter"
			}
		}
		return false
	})
	r.work("2")
}

func playRemove(r *crashRun) {
	r.work("1")
	gone := r.follower()
	r.judged()
	r.must(http.MethodPost, "/api/cluster/remove", fmt.Sprintf(`{"node_id": %q}`, gone.ID), &struct{}{})
	r.work("2")
}

// playRestore restores a backup of another cluster.
func playRestore(r *crashRun) {
	const tasks = 40
	backup := r.backup(tasks)
	r.judged()
	all := func(m *fsm.Machine) int {
		n := 0
		for i := range tasks {
			if m.ByKey(fmt.Sprint("old ", i)) != nil {
				n++
			}
		}
		return n
	}
	r.know("the backup is there as a whole or not at all", func(m *fsm.Machine) error {
		if n := all(m); n != 0 && n != tasks {
			return fmt.Errorf("%d of its %d tasks are there", n, tasks)
		}
		return nil
	})
	r.must(http.MethodPost, "/api/restore", backup, &struct{}{})
	r.know("the backup is there", func(m *fsm.Machine) error {
		if n := all(m); n != tasks {
			return fmt.Errorf("%d of its %d tasks are there", n, tasks)
		}
		return nil
	})
	r.work("1")
}

// backup returns a backup of a separate node, whose disk is not recorded.
func (r *crashRun) backup(tasks int) string {
	r.t.Helper()
	dir := r.t.TempDir()
	other, err := procs.Start(r.ctx, procs.Config{Binary: r.binary, Dir: dir, Nodes: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	defer other.Close()
	of := &crashRun{t: r.t, ctx: r.ctx, journal: &lossyfs.Journal{}, procs: other, client: r.client}
	for i := range tasks {
		of.submit(fmt.Sprint("old ", i), 3000)
	}
	status, backup, err := of.call(other.Nodes[0], http.MethodGet, "/api/snapshots/latest", "")
	if err != nil || status != http.StatusOK {
		r.t.Fatalf("make a backup: %d %v", status, err)
	}
	return string(backup)
}

// playRecover makes a cluster from one node's folder, with the product's command.
func playRecover(r *crashRun) {
	r.work("1")
	kept := r.waitLeader()
	for _, n := range r.procs.Nodes {
		r.kill(n)
	}
	r.leader, r.from = slices.Index(r.procs.Nodes, kept), r.journal.Len()
	out, err := exec.CommandContext(r.ctx, r.binary, "cluster", "recover", "--data-dir", kept.DataDir, "--yes-i-know-this-may-lose-data").CombinedOutput()
	if err != nil {
		r.t.Fatalf("recover: %v\n%s", err, out)
	}
	r.start(kept)
	r.work("2")
}

// playUpgrade upgrades the nodes to the newer build, one by one, and then finally.
func playUpgrade(r *crashRun) {
	r.work("1")
	r.judged()
	for _, n := range r.procs.Nodes {
		if err := n.Stop(r.ctx); err != nil {
			r.t.Fatal(err)
		}
		n.SetBinary(r.newer)
		r.start(n)
	}
	r.work("2")
	r.must(http.MethodPost, "/api/cluster/upgrade", "", &struct{}{})
	r.know("the feature level is the newer build's", func(m *fsm.Machine) error {
		if level := m.Level(); level != fsm.FeatureLevel() {
			return fmt.Errorf("it is %d", level)
		}
		return nil
	})
	r.work("3")
}

// recoverAgain continues an interrupted recovery.
func recoverAgain(dir string) error {
	_, err := cluster.Recover(cluster.RecoverConfig{DataDir: dir})
	if errors.Is(err, cluster.ErrNothingToRecover) {
		return nil // it is done
	}
	return err
}
