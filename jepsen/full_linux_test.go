package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/claimq/claimq/internal/procs"
)

// Full disks: each node has a separate small file system.

const (
	fullDiskBytes = 256 << 20
	// fullDiskMark is --disk-free-min of those nodes, fullDiskLeft the free space left on a
	// low disk, because claims and settles need some.
	fullDiskMark = 64 << 20
	fullDiskLeft = 48 << 20
)

// onDisks starts nodes with a disk each.
func onDisks(t *testing.T, nodes int) *procs.Cluster {
	t.Helper()
	needRoot(t)
	c := notStarted(t, nodes)
	for _, n := range c.Nodes {
		mountDisk(t, n.DataDir)
		n.SetFlag("--disk-free-min", fmt.Sprint(fullDiskMark))
	}
	starts(t, c)
	t.Cleanup(c.Close) // before the disks go
	return c
}

// mountDisk mounts a new file system, kept in a file, at dir.
func mountDisk(t *testing.T, dir string) {
	t.Helper()
	image := dir + ".disk"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(fullDiskBytes), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, dir}} {
		if printed, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, printed)
		}
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }) // lazily, because its process ends after this
	if err := os.Remove(filepath.Join(dir, "lost+found")); err != nil {
		t.Fatal(err)
	}
}

// fillDisk writes to the node's disk until less than the mark is free, and waits until the
// node knows. makeRoom undoes that.
func fillDisk(t *testing.T, n *procs.Node) (makeRoom func()) {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(n.DataDir, &fs); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(n.DataDir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if size := int64(fs.Bavail)*fs.Bsize - fullDiskLeft; size > 0 {
		err = syscall.Fallocate(int(f.Fd()), 0, 0, size)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, n.ID+" to see that its disk is low", func() bool { return metricOf(t, n, "claimq_disk_low") == 1 })
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		eventually(t, n.ID+" to see that its disk has room", func() bool { return metricOf(t, n, "claimq_disk_low") == 0 })
	}
}

// On a single node, and when all of three are affected, submits are refused, claims and
// completes go on, and submits work again when there is room.
func TestFull_diskOfAll(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			c := onDisks(t, nodes)
			pids := pidsOf(c)
			l := newFullLoad(t, c, 1000)
			l.produce(4)
			l.more(1000, 0)
			var makeRoom []func()
			for _, n := range c.Nodes {
				makeRoom = append(makeRoom, fillDisk(t, n))
			}
			eventually(t, "submits to be refused", func() bool { _, _, refused := l.count("disk"); return refused >= 20 })
			for _, n := range c.Nodes {
				r := mustAsk(t, n, "POST", "/api/tasks", fullSubmit("one-more", 10))
				r.isFull(t, "disk")
			}
			l.round() // commands under way when the disks became full may have succeeded
			submitted, _, _ := l.count("")
			l.work(4)
			l.more(0, 500)
			if now, _, _ := l.count(""); now != submitted {
				t.Errorf("%d tasks were taken on full disks", now-submitted)
			}
			leader, err := c.WaitLeader(deadline(t))
			if err != nil {
				t.Fatal(err)
			}
			if metricOf(t, leader, `claimq_overloads_total{bound="disk"}`) == 0 {
				t.Error("refusals are not counted")
			}
			for _, do := range makeRoom {
				do()
			}
			l.more(500, 500)
			l.finish()
			if after := pidsOf(c); !slices.Equal(after, pids) {
				t.Errorf("processes %v, at first %v", after, pids)
			}
		})
	}
}

// A leader whose disk is low transfers its leadership; a follower's low disk delays
// nothing, but shows in the status.
func TestFull_diskOfOne(t *testing.T) {
	c := onDisks(t, 3)
	pids := pidsOf(c)
	leader, err := c.WaitLeader(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	l := newFullLoad(t, c, 1000)
	l.produce(4)
	l.work(4)
	l.more(200, 200)
	makeRoom := fillDisk(t, leader)
	eventually(t, "another to lead", func() bool {
		now, err := c.Leader(deadline(t))
		return err == nil && now != leader
	})
	l.more(500, 500) // the old leader follows, with its low disk
	now, err := c.WaitLeader(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the full disk alone to be told of", func() bool {
		for _, v := range mustAsk(t, now, "GET", "/api/cluster", nil).Nodes {
			if low := v.NodeID == leader.ID; v.Healthy == low || low && !strings.Contains(v.Problem, "disk") {
				return false
			}
		}
		return true
	})
	if now == leader {
		t.Error("the leadership came back to the full disk")
	}
	makeRoom()
	l.more(100, 100)
	l.finish()
	if after := pidsOf(c); !slices.Equal(after, pids) {
		t.Errorf("processes %v, at first %v", after, pids)
	}
}

// While the disks of two followers are low, the leader refuses submits, because without
// them nothing could be written.
func TestFull_diskOfFollowers(t *testing.T) {
	c := onDisks(t, 3)
	leader, err := c.WaitLeader(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	l := newFullLoad(t, c, 1000)
	l.produce(4)
	l.more(200, 0)
	var makeRoom []func()
	for _, n := range c.Nodes {
		if n != leader {
			makeRoom = append(makeRoom, fillDisk(t, n))
		}
	}
	eventually(t, "submits to be refused", func() bool { _, _, refused := l.count("disk"); return refused >= 20 })
	l.work(4)
	l.more(0, 100)
	makeRoom[0]()
	l.more(200, 200)
	makeRoom[1]()
	l.finish()
}
