package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/history"
	"github.com/claimq/claimq/jepsen/recorder"
)

// Bad surroundings: the node says what is wrong and what to do, ends with an exit code
// other than 0, and damages nothing.

// refuses starts the node and checks that it ends by itself, printing each of says. It
// returns the output.
func refuses(t *testing.T, n *procs.Node, says ...string) string {
	t.Helper()
	before := len(n.Output())
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	return ends(t, n, before, says...)
}

// ends checks that the running node ends by itself; before is the length of its earlier
// output.
func ends(t *testing.T, n *procs.Node, before int, says ...string) string {
	t.Helper()
	if err := n.WaitExit(deadline(t)); err != nil {
		t.Fatal(err)
	}
	printed := n.Output()[before:]
	if code := n.ExitCode(); code <= 0 || code > 128 {
		t.Errorf("exit code: got %d, want one of its own that is not 0", code)
	}
	for _, say := range says {
		if !strings.Contains(printed, say) {
			t.Errorf("%s does not say %q", n.ID, say)
		}
	}
	if strings.Contains(printed, "goroutine ") {
		t.Errorf("%s prints a stack", n.ID)
	}
	t.Logf("exit code %d: %s", n.ExitCode(), lastLine(printed))
	return printed
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// starts starts the nodes that do not run, and waits until all are ready.
func starts(t *testing.T, c *procs.Cluster) {
	t.Helper()
	if err := c.StartAll(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

// user submits tasks and checks that all are there.
type user struct {
	t      *testing.T
	caller *recorder.Caller
	tasks  []uint64
	sent   int
}

func newUser(t *testing.T, c *procs.Cluster) *user {
	t.Helper()
	rec := recorder.New(1)
	t.Cleanup(rec.Close)
	return &user{t: t, caller: rec.Caller(c.URLs(), 0)}
}

// params returns the parameters of the user's task n: text that can be recognized.
func params(n, bytes int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"marker":"the-task-%06d","more":%q}`, n, strings.Repeat("x", bytes)))
}

// submit submits count tasks of about bytes bytes, to any node that accepts them.
func (u *user) submit(count, bytes int) {
	u.t.Helper()
	ctx := deadline(u.t)
	for range count {
		u.sent++
		task := wire.NewTask{TaskType: "t", Params: params(u.sent, bytes), IdempotencyKey: fmt.Sprintf("user-%d", u.sent)}
		op := u.caller.Submit(ctx, task)
		for recorder.Again(op) && ctx.Err() == nil {
			op = u.caller.Submit(ctx, task)
		}
		if op.Outcome != history.OK {
			u.t.Fatalf("submit %d: got %s %s", u.sent, op.Outcome, op.Code)
		}
		u.tasks = append(u.tasks, op.TaskID)
	}
}

// findsAll reads every submitted task.
func (u *user) findsAll() {
	u.t.Helper()
	ctx := deadline(u.t)
	for _, id := range u.tasks {
		op := u.caller.Call(ctx, history.Op{Kind: history.Get, TaskID: id})
		for recorder.Again(op) && ctx.Err() == nil {
			op = u.caller.Call(ctx, history.Op{Kind: history.Get, TaskID: id})
		}
		if op.Outcome != history.OK {
			u.t.Fatalf("task %d: got %s %s", id, op.Outcome, op.Code)
		}
	}
}

// flip changes one bit in each copy of text in the files below dir, and returns a function
// that undoes it. (A store may keep an old copy of a page.)
func flip(t *testing.T, dir, text string) (undo func()) {
	t.Helper()
	old := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(b, []byte(text)) {
			return err
		}
		changed := []byte(text)
		changed[len(changed)/2] ^= 1
		old[path] = b
		return os.WriteFile(path, bytes.ReplaceAll(b, []byte(text), changed), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(old) == 0 {
		t.Fatalf("no file below %s has %q", dir, text)
	}
	return func() {
		for path, b := range old {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stop ends the node in an orderly way.
func stop(t *testing.T, n *procs.Node) {
	t.Helper()
	if err := n.Stop(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if code := n.ExitCode(); code != 0 {
		t.Errorf("exit code of a stopped node: got %d, want 0", code)
	}
}

func TestSurroundings_secondProcessOnTheFolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	u := newUser(t, c)
	u.submit(3, 10)
	// The same flags, except for the ports.
	other, err := procs.New(procs.Config{Binary: binary(), Dir: t.TempDir(), Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	second := other.Nodes[0]
	second.SetFlag("--data-dir", c.Nodes[0].DataDir)
	refuses(t, second, "another claimq process", fmt.Sprintf("pid %d", c.Nodes[0].PID()), c.Nodes[0].DataDir, "stop it first")
	u.submit(3, 10)
	u.findsAll()
	stop(t, c.Nodes[0])
	starts(t, c)
	u.findsAll()
}

func TestSurroundings_fileInPlaceOfTheFolder(t *testing.T) {
	t.Parallel()
	c := notStarted(t, 1)
	n := c.Nodes[0]
	if err := os.WriteFile(n.DataDir, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, n, "is a file, not a folder", n.DataDir)
	if b, err := os.ReadFile(n.DataDir); err != nil || string(b) != "mine" {
		t.Errorf("the file: got %q, %v", b, err)
	}
}

func TestSurroundings_portInUse(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--http-addr", "--peer-addr"} {
		t.Run(flag, func(t *testing.T) {
			c := notStarted(t, 1)
			n := c.Nodes[0]
			addr := n.HTTPAddr
			if flag == "--peer-addr" {
				addr = n.PeerAddr
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			refuses(t, n, flag, addr, "in use", "choose another")
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			starts(t, c)
		})
	}
}

func TestSurroundings_flippedBitInTheLog(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	u := newUser(t, c)
	u.submit(40, 100)
	n := c.Nodes[1]
	stop(t, n)
	u.submit(5, 100)
	undo := flip(t, n.DataDir, "the-task-000020")
	refuses(t, n, "log damaged", n.DataDir, "checksum mismatch", "claimq cluster remove", "--join")
	u.submit(5, 100)
	u.findsAll()
	undo()
	starts(t, c)
	u.findsAll()
}

const (
	fillTaskBytes = 100_000
	fillTaskMax   = 400 // tasks of fillTaskBytes: enough to make a snapshot due, or to fill a small disk
)

func TestSurroundings_corruptSnapshot(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "--snapshot-log-bytes", "1048576")
	u := newUser(t, c)
	n := c.Nodes[1]
	u.submit(10, 100)
	for i := 0; !hasSnapshot(t, n.DataDir) && i < fillTaskMax; i++ {
		u.submit(1, fillTaskBytes)
	}
	stop(t, n)
	undo := flip(t, filepath.Join(n.DataDir, "snapshots"), "the-task-000005")
	refuses(t, n, "snapshot damaged", n.DataDir, "--join")
	u.submit(5, 100)
	u.findsAll()
	undo()
	starts(t, c)
	u.findsAll()
}

// hasSnapshot reports whether the folder has a finished snapshot.
func hasSnapshot(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "snapshots"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmp") {
			return true
		}
	}
	return false
}

func TestSurroundings_wipedFolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	u := newUser(t, c)
	u.submit(20, 100)
	n := c.Nodes[2]
	stop(t, n)
	kept := n.DataDir + ".kept"
	if err := os.Rename(n.DataDir, kept); err != nil {
		t.Fatal(err)
	}
	refuses(t, n, "join")
	u.submit(5, 100)
	u.findsAll()
	if err := os.RemoveAll(n.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(kept, n.DataDir); err != nil {
		t.Fatal(err)
	}
	starts(t, c)
	u.findsAll()
}

// notStarted is newCluster without the start.
func notStarted(t *testing.T, nodes int, flags ...string) *procs.Cluster {
	t.Helper()
	c, err := procs.New(procs.Config{Binary: binary(), Dir: t.TempDir(), Nodes: nodes, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
