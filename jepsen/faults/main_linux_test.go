package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// patience bounds what must happen.
const patience = 60 * time.Second

// buildDir is the folder of the tests' binary; TestMain removes it.
var buildDir string

// binary returns the claimq that the tests run, built once.
var binary = sync.OnceValue(func() string {
	path, err := procs.Build(context.Background(), buildDir, BuildTag)
	if err != nil {
		panic(err)
	}
	return path
})

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if buildDir, err = os.MkdirTemp("", "claimq-faults-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}

// rig is a running cluster and a caller.
type rig struct {
	*Cluster
	t      *testing.T
	client *http.Client
}

// start starts three nodes, or as many as cfg says. root gives them separate hosts
// and disks.
func start(t *testing.T, root bool, cfg Config) *rig {
	t.Helper()
	if root && os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces and mounts FUSE file systems: run it as root")
	}
	if cfg.Nodes == 0 {
		cfg.Nodes = 3
	}
	cfg.Binary, cfg.Dir, cfg.Seed, cfg.Hosts, cfg.Disks, cfg.Logs = binary(), t.TempDir(), 1, root, root, true
	cfg.Note = t.Logf
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.Nodes {
				t.Logf("%s printed at last:\n%s", n.ID, n.LogTail(20))
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{Cluster: c, t: t, client: &http.Client{Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: true}}}
	if err := c.StartAll(ctx); err != nil {
		t.Fatal(err)
	}
	r.leader()
	return r
}

func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	r.t.Cleanup(cancel)
	return ctx
}

// leader waits for a leader that is not in except.
func (r *rig) leader(except ...*procs.Node) *procs.Node {
	r.t.Helper()
	n, err := r.WaitLeader(r.within(patience), except...)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// inject injects the fault of that name.
func (r *rig) inject(name string) (recover func()) {
	r.t.Helper()
	list, err := ByName(name)
	if err != nil {
		r.t.Fatal(err)
	}
	undo, err := list[0].Inject(r.within(patience), r.Cluster, rand.New(rand.NewSource(1)))
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if err := undo(r.within(patience)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// whole waits until all nodes are ready and a task can be submitted.
func (r *rig) whole() {
	r.t.Helper()
	ctx := r.within(patience)
	for _, n := range r.Nodes {
		if err := n.WaitReady(ctx); err != nil {
			r.t.Fatal(err)
		}
	}
	for {
		if _, err := r.submit(ctx, r.Nodes[0]); err == nil {
			return
		} else if ctx.Err() != nil {
			r.t.Fatalf("submit a task: %v", err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// submit submits a task to the node and returns its id.
func (r *rig) submit(ctx context.Context, n *procs.Node) (id uint64, err error) {
	var answer struct {
		Task struct{ ID uint64 }
	}
	err = r.call(ctx, http.MethodPost, n.URL()+"/api/tasks", `{"params": {"a": 1}}`, &answer)
	return answer.Task.ID, err
}

// call makes a request and decodes its answer.
func (r *rig) call(ctx context.Context, method, url, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return json.Unmarshal(text, answer)
}
