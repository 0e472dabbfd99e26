package cluster

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/cluster/storage/disktest"
	"github.com/claimq/claimq/internal/proof"
)

// To run it for long: make soak. A seed determines the cluster, the faults and the workers'
// plans; but Raft draws its timeouts from another source and goroutines are scheduled
// freely, so a seed does not replay exactly. A failing seed prints everything that
// happened.
var (
	soakSeeds   = flag.Int("soak.seeds", 0, "how many seeds TestSoak runs; 0: 2, or 8 of the whole proof")
	soakFirst   = flag.Uint64("soak.first", 1, "the first seed")
	soakMixName = flag.String("soak.mix", "", "the mix of faults of all seeds; each seed decides if not given")
	soakVirtual = flag.Duration("soak.virtual", time.Minute, "virtual time of each seed")
	// No virtual time passes while goroutines keep each other busy, but real time does. A
	// seed takes a second or two of one core.
	soakReal = flag.Duration("soak.real", 5*time.Minute, "real time after which a seed is told to hang")
	soakStop = flag.Bool("soak.stop", false, "leave out what comes after a seed that fails")
)

// soakOver bounds the virtual time that a seed takes in addition to soakVirtual: while
// something waits forever, time goes on as long as any timer is left.
const soakOver = time.Hour

// TestSoak plays faults on clusters with real stores while workers submit, claim and
// settle, in virtual time. It checks that nothing acknowledged is lost, that no claims
// overlap, that no lease ends early or late, that the cluster serves soon after everything
// is healed, that all nodes end up in the same state, and that they then survive one more
// thing: a node that comes to differ, one put back from an old copy, one that was paused
// while a copy of it took its place, or addresses that change at once; and synctest checks
// that no goroutine is left.
func TestSoak(t *testing.T) {
	t.Parallel()
	var total soakTotal
	t.Run("seeds", func(t *testing.T) {
		for i := range cmp.Or(*soakSeeds, proof.Count(2, 8)) {
			seed := *soakFirst + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if *soakStop && total.failed.Load() {
					return
				}
				defer func() {
					if t.Failed() {
						total.failed.Store(true)
					}
				}()
				total.add(runSoak(t, seed))
			})
		}
	})
	t.Log(total.String())
}

// soakEvents is the file of a soakLog.
const soakEvents = "events"

// soakTotal sums up the results of seeds.
type soakTotal struct {
	seeds, submits, claims, unknown, reads, snapshots, restores, loops, changes, crashes atomic.Int64
	virtual                                                                              atomic.Int64
	failed                                                                               atomic.Bool // of a seed
}

func (s *soakTotal) add(r soakResult) {
	s.seeds.Add(1)
	s.virtual.Add(int64(r.virtual))
	for sum, n := range map[*atomic.Int64]int{
		&s.submits: r.submits, &s.claims: r.claims, &s.unknown: r.unknown, &s.reads: r.reads,
		&s.snapshots: r.snapshots, &s.restores: r.restores, &s.loops: r.loops, &s.changes: r.changes, &s.crashes: r.crashes,
	} {
		sum.Add(int64(n))
	}
}

func (s *soakTotal) String() string {
	return fmt.Sprintf("%d seeds, %.2f virtual hours: %d submits and %d claims acknowledged, %d outcomes unknown, %d linearizable reads; "+
		"%d changes of leader, %d crashes at a write, %d snapshots taken, %d restored while running, %d loops of restores",
		s.seeds.Load(), time.Duration(s.virtual.Load()).Hours(), s.submits.Load(), s.claims.Load(), s.unknown.Load(), s.reads.Load(),
		s.changes.Load(), s.crashes.Load(), s.snapshots.Load(), s.restores.Load(), s.loops.Load())
}

// soakResult counts what one seed has seen.
type soakResult struct {
	virtual                                                                       time.Duration
	submits, claims, unknown, reads, snapshots, restores, loops, changes, crashes int
}

// runSoak runs one seed.
func runSoak(t *testing.T, seed uint64) (result soakResult) {
	t.Helper()
	dir := disktest.MemoryDir(t)
	stuck := time.AfterFunc(*soakReal, func() {
		events, err := os.ReadFile(filepath.Join(dir, soakEvents))
		panic(fmt.Sprintf("seed %d has not ended after %s: everything that happened: %s, %v", seed, *soakReal, events, err))
	})
	defer stuck.Stop()
	var bubble string
	defer func() {
		if p := recover(); p != nil && !onlyTransfersLeft(bubble) {
			panic(p)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		bubble = ownBubble()
		start := time.Now()
		c := newSoakCluster(t, seed, dir, nil)
		endless := time.AfterFunc(*soakVirtual+soakOver, func() {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("seed %d does not end: everything that happened: %s", seed, c.log.text()))
		})
		defer endless.Stop()
		defer func() {
			c.close()
			if t.Failed() {
				t.Logf("everything that happened with seed %d:\n%s", seed, c.log.text())
			}
			c.closeLog()
		}()
		result = c.soak(seed)
		result.virtual = time.Since(start)
	})
	return result
}

// soak plays faults under load for the time of a seed, and checks the results.
func (c *soakCluster) soak(seed uint64) soakResult {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h := &soakHealth{c: c}
	l := newSoakLoad(c, h)
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		h.run(ctx, l)
	}()
	defer l.wg.Wait()
	defer cancel() // before the wait
	if c.plan.restore {
		c.restoreBackup(l)
	}
	l.start(ctx, seed)

	c.checkRecovery(l)
	faults := soakFaults()
	for until := time.Now().Add(*soakVirtual); time.Now().Before(until) && !c.t.Failed(); {
		for range 1 + c.random.IntN(8) {
			c.playFault(faults)
			<-time.After(time.Duration(c.random.IntN(2500)) * time.Millisecond)
			c.restartLooped()
		}
		c.checkRecovery(l)
	}
	cancel()
	l.wg.Wait()
	c.checkRecovery(l)
	c.checkSame()
	c.checkAcknowledged(l)
	// Nodes that start from the disk have the same.
	c.restartAll()
	c.checkRecovery(l)
	c.checkSame()
	c.checkAcknowledged(l)
	switch c.random.IntN(7) {
	case 0, 1:
		c.checkDiffering()
	case 2, 3:
		c.checkRestoredAlone()
	case 4:
		c.checkOldCopy()
	case 5:
		c.checkMoved()
	case 6:
		c.checkCopyBeside()
	}
	for _, m := range c.members {
		c.stop(m, 0) // adds to the counts
	}
	return soakResult{
		submits: l.submits, claims: l.claims, unknown: l.unknown, reads: l.reads, changes: h.now().changes,
		snapshots: int(c.snapshots.Load()), restores: int(c.restores.Load()), loops: int(c.loops.Load()), crashes: int(c.crashes.Load()),
	}
}
