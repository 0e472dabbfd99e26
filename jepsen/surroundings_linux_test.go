package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/history"
)

// Bad surroundings that are made by mounting file systems.

func TestSurroundings_readOnlyFolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	u := newUser(t, c)
	u.submit(3, 10)
	n := c.Nodes[0]
	stop(t, n)
	readOnly(t, n.DataDir, func() {
		refuses(t, n, "read-only", n.DataDir)
	})
	starts(t, c)
	u.findsAll()
}

// readOnly calls do while dir is mounted on itself, read-only, because root may write no matter
// what the mode of a folder is.
func readOnly(t *testing.T, dir string, do func()) {
	t.Helper()
	needRoot(t)
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatalf("bind mount %s: %v", dir, err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	}()
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatalf("remount %s read-only: %v", dir, err)
	}
	do()
}

// needRoot fails the test if it cannot mount.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a file system: run it as root (sudo), or in a container")
	}
}

const (
	smallDiskBytes  = 56 << 20
	diskFullExit    = 70
	fillerBlockSize = 64 << 10
)

func TestSurroundings_fullDisk(t *testing.T) {
	t.Parallel()
	needRoot(t)
	c := notStarted(t, 3)
	n := c.Nodes[2]
	if err := os.Mkdir(n.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", n.DataDir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(n.DataDir, syscall.MNT_DETACH) }) // lazily, because its process ends after this
	starts(t, c)
	u := newUser(t, c)
	follows(t, c, n)
	u.submit(10, 100)
	before := len(n.Output())
	filler := fill(t, n.DataDir)
	for i := 0; n.Running() && i < fillTaskMax; i++ {
		follows(t, c, n)
		u.submit(1, fillTaskBytes)
	}
	printed := ends(t, n, before, "no space left on device", "free", n.DataDir)
	if code := n.ExitCode(); code != diskFullExit {
		t.Errorf("exit code: got %d, want %d\n%s", code, diskFullExit, printed)
	}
	u.submit(5, 100)
	u.findsAll()
	// Restarted, it refuses at once, or at the first write that finds no room.
	before = len(n.Output())
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; n.Running() && i < fillTaskMax; i++ {
		follows(t, c, n)
		u.submit(1, fillTaskBytes)
	}
	ends(t, n, before, "free")

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	grow(t, n.DataDir)
	starts(t, c)
	u.findsAll()
}

// follows makes a node other than n the leader, because a leader with such a small disk refuses
// every submit.
func follows(t *testing.T, c *procs.Cluster, n *procs.Node) {
	t.Helper()
	leader, err := c.WaitLeader(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if leader != n || n.Pause() != nil { // it may have ended
		return
	}
	if _, err := c.WaitLeader(deadline(t), n); err != nil {
		t.Fatal(err)
	}
	_ = n.Continue()
}

// fill writes a file until the disk is full, and returns its path.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, fillerBlockSize)
	for {
		if _, err = f.Write(block); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: got %v, want no space left", err)
	}
	return path
}

// grow gives the small disk room.
func grow(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", 20*smallDiskBytes)); err != nil {
		t.Fatalf("grow the small disk: %v", err)
	}
}

const (
	fewInodes      = 300
	settledTasks   = 200
	settledBytes   = 300_000 // of each result: all of them take three more segments of the log
	oftenSnapshots = "1048576"
)

// Other programs' files take every inode of the disk, and each that becomes free. Because of that
// the node refuses submits, but still accepts claims and settles, with its log and its snapshots,
// and starts again. With free inodes it accepts submits.
func TestSurroundings_noInode(t *testing.T) {
	t.Parallel()
	needRoot(t)
	c := notStarted(t, 1, "--snapshot-log-bytes", oftenSnapshots)
	n := c.Nodes[0]
	if err := os.Mkdir(n.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", n.DataDir, "tmpfs", 0, fmt.Sprintf("size=1g,nr_inodes=%d", fewInodes)); err != nil {
		t.Fatalf("mount a disk of few inodes: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(n.DataDir, syscall.MNT_DETACH) }) // lazily, because its process ends after this
	starts(t, c)
	u := newUser(t, c)
	u.submit(settledTasks, 10)
	others := filepath.Join(n.DataDir, "others")
	if err := os.Mkdir(others, 0o700); err != nil {
		t.Fatal(err)
	}
	takeInodes(t, others)
	refusesSubmits(t, n)
	half := settledTasks / 2
	u.completes(half, settledBytes, func() { takeInodes(t, others) })
	stop(t, n)
	takeInodes(t, others)
	starts(t, c)
	refusesSubmits(t, n)
	u.completes(settledTasks-half, settledBytes, func() { takeInodes(t, others) })
	if !hasSnapshot(t, n.DataDir) {
		t.Error("no snapshot was taken")
	}
	if err := os.RemoveAll(others); err != nil {
		t.Fatal(err)
	}
	u.submit(5, 100)
	stop(t, n)
	starts(t, c)
	u.findsAll()
}

// takeInodes creates empty files in the folder until no inode is left.
func takeInodes(t *testing.T, dir string) {
	t.Helper()
	for {
		f, err := os.CreateTemp(dir, "")
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// refusesSubmits waits until the node refuses a submit because of missing inodes, and says so.
func refusesSubmits(t *testing.T, n *procs.Node) {
	t.Helper()
	last := ""
	for ctx := deadline(t); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL()+"/api/tasks", strings.NewReader(`{"task_type":"other","params":1}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%v; the last answer was %s", err, last)
		}
		answer, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(answer), `"reason":"disk"`) && strings.Contains(n.Output(), "runs out of inodes") {
			return
		}
		last = string(answer)
	}
}

// completes claims count tasks, one after the other, completes each with a result of about bytes
// bytes, and calls then after each.
func (u *user) completes(count, bytes int, then func()) {
	u.t.Helper()
	ctx := deadline(u.t)
	for range count {
		claim := u.caller.Claim(ctx, wire.Claim{WorkerID: "w", TaskTypes: []string{"t"}})
		if claim.Outcome != history.OK || claim.TaskID == 0 {
			u.t.Fatalf("claim: got %s %s", claim.Outcome, claim.Code)
		}
		done := u.caller.Settle(ctx, history.Complete, claim.TaskID, wire.Settle{
			WorkerID: "w", ClaimToken: claim.Token, Result: params(0, bytes),
		})[0]
		if done.Outcome != history.OK {
			u.t.Fatalf("complete: got %s %s", done.Outcome, done.Code)
		}
		then()
	}
}
