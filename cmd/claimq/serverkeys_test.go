package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/operate"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/procs"
)

// generate makes a key with the command and returns it.
func generate(t *testing.T, flags ...string) operate.GeneratedKey {
	t.Helper()
	var out, errs bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := run(t.Context(), a, append([]string{"key", "generate", "--output", "json"}, flags...)); code != term.ExitDone {
		t.Fatalf("key generate %v: %d %s", flags, code, errs.String())
	}
	var k operate.GeneratedKey
	if err := json.Unmarshal(out.Bytes(), &k); err != nil {
		t.Fatal(err)
	}
	return k
}

// pollInterval is the pause between two checks of a test that waits.
const pollInterval = 50 * time.Millisecond

// keyed is a cluster of three processes that have keys.
type keyed struct {
	*processCluster
	nodes []*keyedNode
}

// keyedNode has its keys in a separate file. Only the first node has them in its configuration.
type keyedNode struct {
	*procs.Node
	file, config string
}

func (n *keyedNode) setKeys(t *testing.T, keys ...operate.GeneratedKey) {
	t.Helper()
	var b strings.Builder
	b.WriteString(n.config)
	b.WriteString("keys:\n")
	for _, k := range keys {
		_, entry, _ := strings.Cut(k.Text(), "keys:\n")
		b.WriteString(entry)
	}
	if err := os.WriteFile(n.file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func startKeyed(t *testing.T, keys ...operate.GeneratedKey) *keyed {
	t.Helper()
	dir := t.TempDir()
	c := &keyed{processCluster: newProcesses(t, 3, 0)}
	for i, process := range c.Nodes {
		n := &keyedNode{Node: process, file: filepath.Join(dir, process.ID+".yaml")}
		flag := "--keys-file"
		if i == 0 {
			n.config = "log_level: debug\n"
			flag = "--config"
		}
		n.SetFlag(flag, n.file)
		n.setKeys(t, keys...)
		c.nodes = append(c.nodes, n)
	}
	c.start(c.Nodes...)
	t.Cleanup(func() {
		var running []*procs.Node
		for _, n := range c.nodes {
			running = append(running, n.Node)
		}
		c.ends(running...)
	})
	return c
}

func (c *keyed) eventually(what string, done func() bool) {
	c.t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for deadline := time.After(claimqtest.Patience); !done(); {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("no %s", what)
		}
	}
}

// ask sends a request with a key.
func ask(ctx context.Context, method, url, key, body string) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		req.Header.Set("X-API-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// settled repeats ask until the answer says what the key may do, because a busy machine may change leaders.
func (c *keyed) settled(method, url, key, body string) (status int, answer string, err error) {
	c.t.Helper()
	c.eventually("answer", func() bool {
		status, answer, err = ask(c.t.Context(), method, url, key, body)
		return err == nil && status < http.StatusInternalServerError
	})
	return status, answer, err
}

// keyLoad submits, claims and completes through all nodes, one task after another in each goroutine, with the key
// that is current.
type keyLoad struct {
	nodes     []*keyedNode
	key       atomic.Pointer[string]
	rounds    atomic.Int64
	completed atomic.Int64
	refused   atomic.Pointer[string] // a refusal because of the key; nil: none

	stop context.CancelFunc
	wait sync.WaitGroup
}

func startKeyLoad(nodes []*keyedNode, key string) *keyLoad {
	l := &keyLoad{nodes: nodes}
	l.key.Store(&key)
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	for i := range 4 {
		l.wait.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l.round(ctx, n)
				l.rounds.Add(1)
			}
		})
	}
	return l
}

func (l *keyLoad) round(ctx context.Context, n int) {
	call := func(step int, path, body string) string {
		status, answer, err := ask(ctx, "POST", l.nodes[(n+step)%len(l.nodes)].URL()+path, *l.key.Load(), body)
		if err == nil && (status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusTooManyRequests) {
			l.refused.Store(&answer)
		}
		return answer
	}
	call(0, "/api/tasks", `{"task_type":"t","params":1}`)
	var claimed struct {
		Task struct {
			ID         int64 `json:"id"`
			ClaimToken int64 `json:"claim_token"`
		} `json:"task"`
	}
	if json.Unmarshal([]byte(call(1, "/api/tasks/claim", `{"worker_id":"w","task_types":["t"]}`)), &claimed) != nil || claimed.Task.ID == 0 {
		return
	}
	answer := call(2, fmt.Sprintf("/api/tasks/%d/complete", claimed.Task.ID), fmt.Sprintf(`{"worker_id":"w","claim_token":%d}`, claimed.Task.ClaimToken))
	if strings.Contains(answer, `"status":"completed"`) {
		l.completed.Add(1)
	}
}

// pass waits until every goroutine has begun a round after the call.
func (l *keyLoad) pass(c *keyed) {
	// More rounds have ended than there are goroutines, so each earlier round has ended.
	until := l.rounds.Load() + 12
	c.eventually("progress of the load", func() bool { return l.rounds.Load() >= until })
}

// A key is exchanged on three nodes under load, in the order of docs/protocol.md. No request is refused.
func TestKeys_Rotation(t *testing.T) {
	t.Parallel()
	root := generate(t, "--role", "operator", "--name", "root", "--rate", "0")
	before := generate(t, "--role", "operator", "--name", "app-1", "--rate", "0", "--type", "t")
	after := generate(t, "--role", "operator", "--name", "app-2", "--rate", "0", "--type", "t")
	c := startKeyed(t, root, before)
	load := startKeyLoad(c.nodes, before.Key)
	defer load.wait.Wait()
	defer load.stop()
	load.pass(c)

	reload := func(keys ...operate.GeneratedKey) {
		t.Helper()
		for i, n := range c.nodes {
			n.setKeys(t, keys...)
			if i == 0 { // one way first, then the other
				if err := n.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				want := fmt.Sprintf("claimq_api_keys %d\n", len(keys))
				c.eventually("reload by SIGHUP", func() bool {
					_, text, err := ask(t.Context(), "GET", n.URL()+"/metrics", root.Key, "")
					return err == nil && strings.Contains(text, want)
				})
				continue
			}
			status, answer, err := ask(t.Context(), "POST", n.URL()+"/api/reload", root.Key, "")
			if want := fmt.Sprintf(`"keys":%d}`, len(keys)); err != nil || status != 200 || !strings.Contains(answer, want) {
				t.Fatalf("reload: %d %s %v", status, answer, err)
			}
			load.pass(c)
		}
	}
	reload(root, before, after)
	load.key.Store(&after.Key)
	load.pass(c)
	reload(root, after)
	load.pass(c)

	for _, n := range c.nodes {
		if status, answer, err := ask(t.Context(), "GET", n.URL()+"/api/types", before.Key, ""); err != nil || status != http.StatusUnauthorized {
			t.Errorf("the old key: %d %s %v", status, answer, err)
		}
	}
	// A mistake changes nothing and is reported.
	for i, n := range c.nodes {
		spoiled := after
		spoiled.Role = "king"
		n.setKeys(t, root, spoiled)
		if status, answer, err := ask(t.Context(), "POST", n.URL()+"/api/reload", root.Key, ""); err != nil || status != http.StatusBadRequest || !strings.Contains(answer, "role") {
			t.Errorf("node %d, a mistake: %d %s %v", i+1, status, answer, err)
		}
	}
	load.pass(c)
	load.stop()
	load.wait.Wait()
	if bad := load.refused.Load(); bad != nil {
		t.Errorf("a request was refused: %s", *bad)
	}
	if load.completed.Load() == 0 {
		t.Error("nothing was completed")
	}
	// Events that had no leader to record them are missing. The others are there.
	_, trail, err := c.settled("GET", c.nodes[1].URL()+"/api/events?event=keys_reloaded", root.Key, "")
	if err != nil || !strings.Contains(trail, " keys by root") {
		t.Errorf("the trail: %s %v", trail, err)
	}
	for _, n := range c.nodes {
		printed := n.Output()
		if strings.Contains(printed, "no API keys") {
			t.Errorf("%s says that it is open:\n%s", n.file, printed)
		}
		for _, k := range []operate.GeneratedKey{root, before, after} {
			if strings.Contains(printed, k.Key) || strings.Contains(printed, k.SHA256) {
				t.Errorf("the log has the key %s or its hash", k.Name)
			}
		}
	}
}

// On each of three nodes, a role allows exactly the calls that it is for.
func TestKeys_Roles(t *testing.T) {
	t.Parallel()
	keys := map[string]operate.GeneratedKey{}
	var all []operate.GeneratedKey
	for _, role := range []string{"reader", "producer", "worker", "operator"} {
		keys[role] = generate(t, "--role", role, "--name", role, "--rate", "0")
		all = append(all, keys[role])
	}
	slow := generate(t, "--role", "reader", "--name", "slow", "--rate", "2")
	c := startKeyed(t, append(all, slow)...)
	const submit = `{"params":1}`
	for _, call := range []struct{ method, path, body, may string }{
		{"POST", "/api/tasks", submit, "producer operator"},
		{"POST", "/api/tasks/actions", `{"action":"cancel","filter":{"task_type":"none"}}`, "producer operator"},
		{"POST", "/api/tasks/claim", `{"worker_id":"w","limit":1}`, "worker operator"},
		{"POST", "/api/batch", `{"ops":[{"op":"submit","params":1},{"op":"claim","worker_id":"w","limit":1}]}`, "operator"},
		{"POST", "/api/batch", `{"ops":[{"op":"submit","params":1}]}`, "producer operator"},
		{"GET", "/api/tasks", "", "reader producer worker operator"},
		{"GET", "/metrics", "", "reader producer worker operator"},
		{"GET", "/api/cluster", "", "operator"},
		{"PATCH", "/api/types/t", `{"max_claimed":5}`, "operator"},
		{"POST", "/api/reload", "", "operator"},
		{"GET", "/openapi.json", "", "reader producer worker operator none"},
		{"GET", "/readyz", "", "reader producer worker operator none"},
	} {
		for i, n := range c.nodes {
			for _, role := range []string{"none", "reader", "producer", "worker", "operator"} {
				want := http.StatusForbidden
				switch {
				case strings.Contains(call.may, role):
					want = http.StatusOK
				case role == "none":
					want = http.StatusUnauthorized
				}
				status, answer, err := c.settled(call.method, n.URL()+call.path, keys[role].Key, call.body)
				if status == http.StatusCreated {
					status = http.StatusOK
				}
				if err != nil || status != want {
					t.Errorf("%s %s %s on node %d with the role %s: %d %s, %v", call.method, call.path, call.body, i+1, role, status, answer, err)
				}
			}
		}
	}
	for i, n := range c.nodes { // each node counts by itself
		for round, want := range []int{200, 200, 429} {
			if status, answer, err := ask(t.Context(), "GET", n.URL()+"/api/stats?consistency=stale", slow.Key, ""); err != nil || status != want {
				t.Errorf("node %d, request %d: %d %s %v", i+1, round+1, status, answer, err)
			}
		}
	}
	// The commands send the key that they get.
	for _, args := range [][]string{{"submit", "mail"}, {"stats"}, {"key", "reload"}, {"cluster", "status"}} {
		var out, errs bytes.Buffer
		a := &term.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: []string{
			"CLAIMQ_API_KEY=" + keys["operator"].Key, "CLAIMQ_ENDPOINTS=" + strings.Join(c.URLs(), ","),
		}}
		if code := run(t.Context(), a, args); code != term.ExitDone {
			t.Errorf("claimq %v: %d %s%s", args, code, out.String(), errs.String())
		}
		if args[0] == "key" && out.String() != "n1 has 5 keys\nn2 has 5 keys\nn3 has 5 keys\n" {
			t.Errorf("key reload: %s", out.String())
		}
	}
}

// Beyond loopback a server requires keys, or a setting that it may do without.
func TestServer_OpenBeyondLoopback(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs}
	code := run(t.Context(), a, []string{"server", "--node-id", "n1", "--data-dir", t.TempDir(), "--bootstrap", "--http-addr", "192.0.2.1:7400"})
	if code != term.ExitUsage || !strings.Contains(errs.String(), "--insecure") || !strings.Contains(errs.String(), "keys") {
		t.Errorf("%d %s", code, errs.String())
	}
}
