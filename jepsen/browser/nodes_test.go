package browser

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// keyOf returns the key of a user: ops is an operator, makes a producer, works a worker,
// reads a reader; mails is a producer for tasks of type mail.
func keyOf(name string) string { return "claimq_the-key-of-" + name }

// keysFile returns the file of the keys.
func keysFile() string {
	var b strings.Builder
	b.WriteString("keys:\n")
	for _, k := range [...][3]string{{"ops", "operator"}, {"makes", "producer"}, {"works", "worker"}, {"reads", "reader"}, {"mails", "producer", "[mail]"}} {
		sum := sha256.Sum256([]byte(keyOf(k[0])))
		fmt.Fprintf(&b, "  - name: %s\n    role: %s\n    rate_limit_per_minute: 0\n    key_sha256: %s\n", k[0], k[1], hex.EncodeToString(sum[:]))
		if k[2] != "" {
			fmt.Fprintf(&b, "    task_types: %s\n", k[2])
		}
	}
	return b.String()
}

// start starts three nodes that serve the current page, with keys or open to everybody.
func start(withKeys bool) (c *procs.Cluster, dir string, err error) {
	// The go command has to see the files of the binary, otherwise it would keep the cached
	// test result after a change of the page.
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	ctx := context.Background()
	if out, err := exec.CommandContext(ctx, "../../web/libraries", "--need").CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("%w\n%s", err, out)
	}
	if dir, err = os.MkdirTemp("", "claimq-page-"); err != nil {
		return nil, "", err
	}
	binary, err := procs.Build(ctx, dir)
	if err != nil {
		return nil, dir, err
	}
	cfg := procs.Config{Binary: binary, Dir: dir, Nodes: 3}
	if withKeys {
		keys := filepath.Join(dir, "keys.yaml")
		if err := os.WriteFile(keys, []byte(keysFile()), 0o600); err != nil {
			return nil, dir, err
		}
		cfg.Flags, cfg.APIKey = []string{"--keys-file", keys}, keyOf("ops")
	}
	c, err = procs.Start(ctx, cfg)
	return c, dir, err
}

// nodes are started by the first test that needs them. Each test leaves them running.
var nodes = struct {
	once sync.Once
	all  *procs.Cluster
	dir  string
	err  error
}{}

func TestMain(m *testing.M) {
	code := m.Run()
	quit()
	if nodes.all != nil {
		nodes.all.Close()
	}
	if nodes.dir != "" {
		_ = os.RemoveAll(nodes.dir) // a folder for temporary files
	}
	os.Exit(code)
}

// cluster returns the three nodes, which have a leader.
func cluster(t testing.TB) *procs.Cluster {
	t.Helper()
	nodes.once.Do(func() { nodes.all, nodes.dir, nodes.err = start(true) })
	if nodes.err != nil {
		t.Fatal(nodes.err)
	}
	if _, err := nodes.all.WaitLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	return nodes.all
}

// kill kills a node, and starts it again when the test is over.
func kill(t *testing.T, n *procs.Node) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again(t, n) })
}

// again starts a node that was killed, unless it runs already.
func again(t *testing.T, n *procs.Node) {
	t.Helper()
	if n.Running() {
		return
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// follower returns a node that does not lead.
func follower(t *testing.T) *procs.Node {
	t.Helper()
	c := cluster(t)
	leader, err := c.WaitLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Nodes[0] == leader {
		return c.Nodes[1]
	}
	return c.Nodes[0]
}

// restart restarts a node with one more flag, and without it again when the test is over.
func restart(t *testing.T, n *procs.Node, flag string) {
	t.Helper()
	args := n.Args
	with := func(args []string) {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		n.Args = args
		again(t, n)
	}
	with(append(slices.Clone(args), flag))
	t.Cleanup(func() { with(args) })
}

// call calls the API like a program. It retries while there is no leader, and fails the
// test unless it succeeds.
func call(t testing.TB, n *procs.Node, method, target, body string) (answer []byte) {
	t.Helper()
	status := 0
	testwait.Until(t, "there is a leader", func() bool {
		answer, status = try(t, n, method, target, body)
		return status != http.StatusServiceUnavailable
	})
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, target, status, answer)
	}
	return answer
}

// try calls the API like a program.
func try(t testing.TB, n *procs.Node, method, target, body string) (_ []byte, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.URL()+target, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", keyOf("ops"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return answer.Bytes(), resp.StatusCode
}
