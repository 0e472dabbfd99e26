package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/claimq/claimq/jepsen/procs"
)

// The bad surroundings that are made by mounting file systems.

func TestSurroundings_readOnlyFolder(t *testing.T) {
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

// readOnly calls do while dir is mounted on itself, read-only. As root no mode
// of a folder keeps us from writing.
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
	needRoot(t)
	c := notStarted(t, 3)
	n := c.Nodes[2]
	if err := os.Mkdir(n.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", n.DataDir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(n.DataDir, syscall.MNT_DETACH) }) // its own end is next
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
	// Started again it refuses at once, or at the first write that finds no room.
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

// follows makes sure that another node leads than n: a leader whose disk is as
// small as that refuses every submit.
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
