package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// Full nodes: of tasks, connections, waiting claims, commands. Refusals say why, calls that
// make room go on, and no restart is necessary.

// reply is a node's answer.
type reply struct {
	status int
	header http.Header

	Code   string
	Reason string
	Error  string
	Task   *fullTask
	Tasks  []fullTask
	Counts map[string]int64
	Nodes  []struct {
		NodeID  string `json:"node_id"`
		Healthy bool
		Problem string
	}
	Leader string
}

type fullTask struct {
	ID    uint64
	Token uint64 `json:"claim_token"`
}

// askFull sends one request to the node, with body as JSON if it is not nil.
func askFull(ctx context.Context, n *procs.Node, method, path string, body any) (r reply, err error) {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return r, err
		}
		sent = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, n.URL()+path, sent)
	if err != nil {
		return r, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }()
	r.status, r.header = resp.StatusCode, resp.Header
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

// mustAsk is askFull for a node that must answer.
func mustAsk(t *testing.T, n *procs.Node, method, path string, body any) reply {
	t.Helper()
	r, err := askFull(deadline(t), n, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// isFull checks that the reply is a refusal because of the bound.
func (r *reply) isFull(t *testing.T, bound string) {
	t.Helper()
	if r.status != http.StatusServiceUnavailable || r.Code != "overloaded" || r.Reason != bound || r.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, reason %q, Retry-After %q; want 503 overloaded, reason %q", r.status, r.Code, r.Reason, r.header.Get("Retry-After"), bound)
	}
}

// fullSubmit returns a submit with params of that size.
func fullSubmit(key string, size int) map[string]any {
	return map[string]any{"task_type": "full", "idempotency_key": key, "max_attempts": 0, "params": strings.Repeat("x", size)}
}

// metricOf reads one series of the node's metrics, 0 if it is missing.
func metricOf(t *testing.T, n *procs.Node, series string) float64 {
	t.Helper()
	resp, err := http.Get(n.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	return 0
}

// fullTimeout bounds a step under load, which shares the machine with the nodes.
const fullTimeout = 3 * time.Minute

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fullTimeout)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited too long: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// fullLoad submits tasks through all nodes, works on them, and remembers what was
// acknowledged.
type fullLoad struct {
	t     *testing.T
	nodes []*procs.Node
	size  int // of the params
	ahead int // bound of the producers' lead over the workers, in tasks; 0: none

	producing, working context.Context
	stopProducing      context.CancelFunc
	stopWorking        context.CancelFunc
	producers, workers sync.WaitGroup

	mu        sync.Mutex
	tries     map[int]int       // ended submits, by producer
	submitted map[uint64]string // keys by id
	completed map[uint64]uint64 // tokens by id
	refused   map[string]int    // overloaded submits, by reason
	others    map[string]int    // overloaded claims and completes, by reason
	lastNew   time.Time         // of the newest acknowledged submit
}

func newFullLoad(t *testing.T, c *procs.Cluster, size int) *fullLoad {
	l := &fullLoad{
		t: t, nodes: c.Nodes, size: size, tries: map[int]int{},
		submitted: map[uint64]string{}, completed: map[uint64]uint64{}, refused: map[string]int{}, others: map[string]int{},
	}
	l.producing, l.stopProducing = context.WithCancel(t.Context())
	l.working, l.stopWorking = context.WithCancel(t.Context())
	t.Cleanup(func() {
		l.stopProducing()
		l.stopWorking()
		l.producers.Wait()
		l.workers.Wait()
	})
	return l
}

func (l *fullLoad) produce(producers int) {
	for i := range producers {
		l.producers.Go(func() {
			for n := 0; l.producing.Err() == nil; n++ {
				key := fmt.Sprintf("full-%d-%d", i, n)
				for l.producing.Err() == nil && (l.isAhead() || !l.try(i, key, i+n)) {
					<-time.After(20 * time.Millisecond)
				}
			}
		})
	}
}

// isAhead reports whether the producers have to wait for the workers.
func (l *fullLoad) isAhead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ahead > 0 && len(l.submitted)-len(l.completed) >= l.ahead
}

// try calls submit for a producer.
func (l *fullLoad) try(producer int, key string, at int) bool {
	done := l.submit(key, at)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tries[producer]++
	return done
}

// round waits until every current submit has ended.
func (l *fullLoad) round() {
	l.t.Helper()
	l.mu.Lock()
	before := maps.Clone(l.tries)
	l.mu.Unlock()
	eventually(l.t, "the submits that are under way to end", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for producer, tries := range l.tries {
			if tries == before[producer] {
				return false
			}
		}
		return true
	})
}

// submit submits the task with the key, once, and reports whether it exists.
func (l *fullLoad) submit(key string, at int) bool {
	r, err := askFull(l.t.Context(), l.nodes[at%len(l.nodes)], "POST", "/api/tasks", fullSubmit(key, l.size))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		return false
	case r.status < 300 && r.Task != nil:
		l.submitted[r.Task.ID], l.lastNew = key, time.Now()
		return true
	case r.Code == "overloaded":
		l.refused[r.Reason]++
	case r.status < 500:
		l.t.Errorf("submit: %d %s: %s", r.status, r.Code, r.Error)
		return true
	}
	return false
}

func (l *fullLoad) work(workers int) {
	for i := range workers {
		l.workers.Go(func() {
			for n := i; l.working.Err() == nil; n++ {
				if !l.claim(fmt.Sprintf("w%d", i), l.nodes[n%len(l.nodes)]) {
					<-time.After(20 * time.Millisecond)
				}
			}
		})
	}
}

// claim claims some tasks and completes each, until that is known to be done. It reports
// whether it got any.
func (l *fullLoad) claim(worker string, n *procs.Node) bool {
	r, err := askFull(l.t.Context(), n, "POST", "/api/tasks/claim", map[string]any{"worker_id": worker, "limit": 5, "lease_ms": 10_000, "wait_ms": 500})
	if err != nil {
		return false
	}
	l.notRefused(&r)
	for _, task := range r.Tasks {
		body := map[string]any{"worker_id": worker, "claim_token": task.Token, "result": "done"}
		for at := 0; l.t.Context().Err() == nil; at++ {
			r, err := askFull(l.t.Context(), l.nodes[at%len(l.nodes)], "POST", fmt.Sprintf("/api/tasks/%d/complete", task.ID), body)
			if err == nil {
				l.notRefused(&r)
			}
			if err == nil && r.status < 500 {
				l.done(task, &r)
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return len(r.Tasks) > 0
}

func (l *fullLoad) done(task fullTask, r *reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch before, twice := l.completed[task.ID]; {
	case r.status != http.StatusOK && r.Code == "stale_claim": // its lease ran out
	case r.status != http.StatusOK:
		l.t.Errorf("complete: %d %s: %s", r.status, r.Code, r.Error)
	case twice && before != task.Token:
		l.t.Errorf("task %d was completed by two claims, %d and %d", task.ID, before, task.Token)
	default:
		l.completed[task.ID] = task.Token
	}
}

func (l *fullLoad) notRefused(r *reply) {
	if r.Code == "overloaded" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.others[r.Reason]++
	}
}

// count returns the numbers of acknowledged and completed tasks, and of submits refused
// because of the bound.
func (l *fullLoad) count(bound string) (submitted, completed, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.submitted), len(l.completed), l.refused[bound]
}

// more waits until that many more tasks than now are acknowledged and completed.
func (l *fullLoad) more(submitted, completed int) {
	l.t.Helper()
	submitted0, completed0, _ := l.count("")
	eventually(l.t, fmt.Sprintf("%d more submits, %d more completes", submitted, completed), func() bool {
		s, c, _ := l.count("")
		return s >= submitted0+submitted && c >= completed0+completed
	})
}

// finish ends the producers, lets the workers do the rest, and checks that each
// acknowledged task was done and nothing is left.
func (l *fullLoad) finish() {
	l.t.Helper()
	l.stopProducing()
	eventually(l.t, "the rest to be done", func() bool {
		l.mu.Lock()
		missing := len(l.submitted)
		for id := range l.submitted {
			if l.completed[id] != 0 {
				missing--
			}
		}
		l.mu.Unlock()
		if missing > 0 {
			return false
		}
		r, err := askFull(l.t.Context(), l.nodes[0], "GET", "/api/stats", nil)
		return err == nil && r.status == http.StatusOK && r.Counts["pending"]+r.Counts["claimed"] == 0
	})
	l.stopWorking()
	l.producers.Wait()
	l.workers.Wait()
	l.t.Logf("%d tasks acknowledged, %d done; submits refused: %v", len(l.submitted), len(l.completed), l.refused)
	if len(l.others) > 0 {
		l.t.Errorf("claims or completes were refused: %v", l.others)
	}
}

// Above memory_limit submits are refused; claims and completes go on and make room.
func TestFull_memory(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			const limit = 8 << 20
			c := newCluster(t, nodes, "--memory-limit", strconv.Itoa(limit))
			pids := pidsOf(c)
			l := newFullLoad(t, c, 64<<10)
			l.produce(3)
			eventually(t, "submits to be refused", func() bool { _, _, refused := l.count("memory"); return refused >= 20 })
			leader, err := c.WaitLeader(deadline(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range c.Nodes {
				r := mustAsk(t, n, "POST", "/api/tasks", fullSubmit("one-more", 10))
				r.isFull(t, "memory")
			}
			before, _, _ := l.count("")
			if most := before * 66 << 10; most < limit*8/10 {
				t.Errorf("refused after %d tasks, about %d bytes", before, most)
			}
			l.work(4)
			// Several times what fits: ended tasks make room.
			l.more(2*before, 2*before)
			if bytes := metricOf(t, leader, "claimq_state_bytes"); bytes > limit*9/8 {
				t.Errorf("the state takes %.0f bytes, the limit is %d", bytes, limit)
			}
			if metricOf(t, leader, `claimq_overloads_total{bound="memory"}`) == 0 || metricOf(t, leader, "claimq_evictions_total") == 0 {
				t.Error("refusals and evictions are not counted")
			}
			l.finish()
			if after := pidsOf(c); !slices.Equal(after, pids) {
				t.Errorf("processes %v, at first %v", after, pids)
			}
		})
	}
}

// Ended tasks alone never prevent submits.
func TestFull_endedTasks(t *testing.T) {
	c := newCluster(t, 1, "--memory-limit", strconv.Itoa(8<<20))
	l := newFullLoad(t, c, 64<<10)
	l.ahead = 30 // tasks that wait for slow workers take memory, too
	l.work(4)
	l.produce(4)
	// About four times what fits.
	l.more(500, 350)
	l.finish()
	if _, _, refused := l.count("memory"); refused > 0 {
		t.Errorf("%d submits were refused", refused)
	}
}

// A leader with a smaller limit than the others refuses submits that another one would
// accept.
func TestFull_memoryOfOneNode(t *testing.T) {
	c := notStarted(t, 3)
	small := c.Nodes[1]
	small.SetFlag("--memory-limit", strconv.Itoa(8<<20))
	starts(t, c)
	lead(t, c, c.Nodes[0])
	l := newFullLoad(t, c, 64<<10)
	l.produce(4)
	l.more(250, 0) // twice what the small one allows
	if _, _, refused := l.count("memory"); refused > 0 {
		t.Errorf("%d submits were refused though the leader has room", refused)
	}
	lead(t, c, small)
	eventually(t, "submits to be refused", func() bool { _, _, refused := l.count("memory"); return refused >= 20 })
	lead(t, c, c.Nodes[0])
	l.more(100, 0)
	l.work(4)
	l.finish()
}

// lead makes the node the leader.
func lead(t *testing.T, c *procs.Cluster, n *procs.Node) {
	t.Helper()
	eventually(t, n.ID+" to lead", func() bool {
		leader, err := c.WaitLeader(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		if leader == n {
			return true
		}
		_, _ = askFull(deadline(t), leader, "POST", "/api/cluster/transfer", map[string]string{"node_id": n.ID}) // or again
		return false
	})
}

// When more claims wait than allowed, the excess is refused at once, and earlier ones
// continue to wait.
func TestFull_waitingClaims(t *testing.T) {
	c := newCluster(t, 1, "--limits-waiting-claims", "2")
	n := c.Nodes[0]
	wait := map[string]any{"worker_id": "w", "wait_ms": 60_000}
	type answered struct {
		reply
		err error
	}
	waiting := make(chan answered, 2)
	for range 2 {
		go func() {
			r, err := askFull(t.Context(), n, "POST", "/api/tasks/claim", wait)
			waiting <- answered{r, err}
		}()
	}
	eventually(t, "two claims to wait", func() bool { return metricOf(t, n, "claimq_waiting_claims") == 2 })
	r := mustAsk(t, n, "POST", "/api/tasks/claim", wait)
	r.isFull(t, "waiting_claims")
	if got := metricOf(t, n, `claimq_overloads_total{bound="waiting_claims"}`); got != 1 {
		t.Errorf("%.0f are counted, want 1", got)
	}
	if r := mustAsk(t, n, "POST", "/api/tasks/claim", map[string]any{"worker_id": "w"}); r.Code != "no_pending_tasks" {
		t.Errorf("a claim that does not wait: %d %s", r.status, r.Code)
	}
	for i := range 2 {
		mustAsk(t, n, "POST", "/api/tasks", fullSubmit(fmt.Sprint(i), 1))
		if a := <-waiting; a.err != nil || a.Task == nil {
			t.Errorf("one that waited: %+v", a)
		}
	}
}

// When more connections are open than allowed, one more is told so and closed.
func TestFull_connections(t *testing.T) {
	const most = 5
	c := newCluster(t, 1, "--limits-connections", strconv.Itoa(most))
	n := c.Nodes[0]
	http.DefaultClient.CloseIdleConnections()
	var conns []net.Conn
	dial := func() string {
		conn, err := net.Dial("tcp", n.HTTPAddr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return ""
		}
		b := make([]byte, 4096)
		read, _ := conn.Read(b) // the whole answer, or a part of it
		return string(b[:read])
	}
	t.Cleanup(func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	})
	full := ""
	for i := range most + 1 { // earlier ones of the test itself may still be open
		if answer := dial(); !strings.HasPrefix(answer, "HTTP/1.1 200") {
			if i < most-1 {
				t.Fatalf("connection %d: %q", i, answer)
			}
			full = answer
			break
		}
	}
	for _, want := range []string{"HTTP/1.1 503", "Retry-After: 1", `"code":"overloaded"`, `"reason":"connections"`} {
		if !strings.Contains(full, want) {
			t.Errorf("one more connection: %q has no %q", full, want)
		}
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	conns = nil
	eventually(t, "room for another", func() bool { return strings.HasPrefix(dial(), "HTTP/1.1 200") })
}

// When more commands come than may wait, submits are refused; repeated, they succeed.
func TestFull_inFlight(t *testing.T) {
	c := newCluster(t, 1, "--limits-in-flight", "4")
	l := newFullLoad(t, c, 100)
	l.produce(64)
	eventually(t, "submits to be refused", func() bool { _, _, refused := l.count("in_flight"); return refused > 0 })
	l.more(200, 0)
	l.stopProducing()
	l.producers.Wait()
	l.work(1) // one alone is never too many
	l.finish()
	if metricOf(t, c.Nodes[0], `claimq_overloads_total{bound="in_flight"}`) == 0 {
		t.Error("refusals are not counted")
	}
}

// pidsOf returns the nodes' process ids.
func pidsOf(c *procs.Cluster) []int {
	var pids []int
	for _, n := range c.Nodes {
		pids = append(pids, n.PID())
	}
	return pids
}
