package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claimq/claimq/internal/simnet"
)

// soakWrite is a kind of durable write.
type soakWrite string

const (
	writeAny      soakWrite = "" // one of the others
	writeLog      soakWrite = "log"
	writeTruncate soakWrite = "truncation"
	writeStable   soakWrite = "term or vote"
	writeSnapshot soakWrite = "snapshot"
)

// soakCrash says at which durable write a node crashes.
type soakCrash struct {
	kind  soakWrite
	after int  // number of writes of the kind before it
	done  bool // the write is on disk, but its caller was not told
}

// soakUnwrittenMax bounds the time that a leader takes to come to a write that it is to
// crash in.
const soakUnwrittenMax = 5 * time.Second

// arm makes the node crash at a future durable write.
func (d *soakDisk) arm(c soakCrash) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.crashed {
		d.armed = &c
	}
}

func (d *soakDisk) disarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed = nil
}

func (d *soakDisk) hasCrashed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.crashed
}

// whileItLives calls do if the node has not crashed, and reports whether it has called it.
// Meanwhile the node does not crash.
func (d *soakDisk) whileItLives(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.crashed {
		do()
	}
	return !d.crashed
}

// durable does a durable write, and crashes before or after it if that is its turn: it
// keeps an image of the disk from which the node starts again. The crashed node goes on
// with the old disk, because goroutines cannot be ended from outside, but all that it sends
// is dropped. durable reports whether the write counts.
func (d *soakDisk) durable(kind soakWrite, write func() error) (counts bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed || d.armed == nil || d.armed.kind != writeAny && d.armed.kind != kind {
		return !d.crashed, write()
	}
	if d.armed.after--; d.armed.after >= 0 {
		return true, write()
	}
	counts = d.armed.done
	if counts {
		err = write()
	}
	d.armed, d.crashed, d.crashedAt = nil, true, kind
	d.crash() // first: a caller that was told of a write finds it in the image
	if imageErr := copyFolder(d.image(), d.path); imageErr != nil {
		panic(imageErr)
	}
	if !counts {
		err = write()
	}
	return counts, err
}

// image returns the folder that a crash leaves.
func (d *soakDisk) image() string { return d.path + "-image" }

// copyFolder copies a folder that others write to: files that vanish are left out.
func copyFolder(to, from string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if e.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o600)
	})
}

// crash ends a node at its current point. Its disk calls it, and is locked.
func (c *soakCluster) crash(m *soakMember, host *simnet.Host) {
	if m.disk.silent {
		host.PowerOff()
	} else {
		host.Kill()
	}
	c.crashes.Add(1)
	c.log.event("%s crashes at a write: %s", m.name, m.disk.crashedAt)
	if n := m.running(); n != nil {
		c.setCrashed(m, n)
	}
}

func (c *soakCluster) setCrashed(m *soakMember, n *Node) {
	c.crashed.Store(n, true)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node, m.ghost = nil, n
}

// hasCrashed reports whether the node has lost its power: its later messages are dropped.
// Any goroutine may call it.
func (c *soakCluster) hasCrashed(n *Node) bool {
	_, crashed := c.crashed.Load(n)
	return crashed
}

// bury ends a crashed node, if there is one, and keeps the disk's state at the crash.
func (c *soakCluster) bury(m *soakMember) {
	if !m.disk.hasCrashed() {
		return
	}
	m.mu.Lock()
	ghost := m.ghost
	m.ghost = nil
	m.mu.Unlock()
	if ghost != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := ghost.Close(ctx); err != nil {
			c.log.event("%s, which had crashed: %v", m.name, err)
		}
	}
	if err := errors.Join(os.RemoveAll(m.disk.path), os.Rename(m.disk.image(), m.disk.path)); err != nil {
		c.fail("%s: %v", m.name, err)
	}
	m.loops.Store(0)
	m.disk.revive()
}

func (d *soakDisk) revive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.crashed = false
}

// crashUnwritten makes the leader of a bare majority crash in a slow write to its log, and
// then lets the other nodes elect a leader: anything acknowledged before it was on the
// leader's own disk would be on one disk too few.
func (c *soakCluster) crashUnwritten() {
	leader := c.leader()
	if leader == nil {
		return
	}
	others := slices.DeleteFunc(slices.Clone(c.members), func(m *soakMember) bool { return m == leader })
	c.random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	away, with := others[:len(others)/2], others[len(others)/2:]
	for _, m := range away {
		c.network.Hold(c.linksOf(m)...)
	}
	c.log.event("%s is to crash before a slow write", leader.name)
	leader.disk.silent = c.random.IntN(2) == 0
	leader.disk.slow.Store(int64(100+c.random.IntN(900)) * int64(time.Millisecond))
	leader.disk.arm(soakCrash{kind: writeLog, after: c.random.IntN(3)})
	c.soakWaitOnce(soakUnwrittenMax, leader.disk.hasCrashed)
	leader.disk.slow.Store(0)
	for _, m := range with {
		c.stop(m, 0)
	}
	for _, m := range away {
		c.network.Release(c.linksOf(m)...)
	}
	if leader.running() == nil {
		c.start(leader)
	}
	<-time.After(time.Duration(2+c.random.IntN(4)) * time.Second)
}

// crashAtWrite makes a node crash at one of its next durable writes.
func (c *soakCluster) crashAtWrite(m *soakMember) {
	kinds := []soakWrite{writeAny, writeAny, writeLog, writeTruncate, writeStable, writeStable, writeSnapshot}
	a := soakCrash{kind: kinds[c.random.IntN(len(kinds))], after: c.random.IntN(4), done: c.random.IntN(2) == 0}
	c.log.event("%s is to crash: %+v", m.name, a)
	m.disk.silent = c.random.IntN(2) == 0
	m.disk.arm(a)
}
