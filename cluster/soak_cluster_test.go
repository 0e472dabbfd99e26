package cluster

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/simnet"
)

// soakCluster is a cluster whose nodes have real stores and an unreliable network, and can
// be stopped and started. Unless they say otherwise, its methods belong to the goroutine
// that plays the faults.
type soakCluster struct {
	t       *testing.T
	plan    soakPlan
	random  *rand.Rand
	network *simnet.Network
	servers []raft.Server
	log     *soakLog
	members []*soakMember
	manners soakManners
	// rough is true while single connections or messages are slow or stalled: a leader may
	// keep leading but commit late.
	rough   atomic.Bool
	entries soakEntries
	votes   soakVotes
	// crashed holds the nodes that have lost their power. Their answers do not count,
	// because no caller could have received them.
	crashed sync.Map
	starts  atomic.Int64 // of nodes
	// silentUntil is the time from which on workers may make calls again, in Unix
	// nanoseconds.
	silentUntil atomic.Int64

	// Counts of nodes that were stopped.
	snapshots, restores, loops, crashes atomic.Int64
}

// soakPlan holds a seed's decisions about its cluster.
type soakPlan struct {
	nodes         int
	wal           []int  // by node: the size of raft-wal's segments in bytes
	snapshotEvery uint64 // commands
	trailing      uint64 // entries kept after a snapshot; 0 = as in production
	weather       simnet.Weather
	mix           string // of faults, in soakMixes
	restore       bool   // a backup is restored before the load begins
	workers       int
	pace          time.Duration // longest pause between two acts of a worker
	leaseMax      time.Duration
}

func newSoakPlan(r *rand.Rand) soakPlan {
	p := soakPlan{
		nodes:         3,
		snapshotEvery: []uint64{5, 20, 100, 400}[r.IntN(4)],
		trailing:      []uint64{32, 64, 128, 1024}[r.IntN(4)],
		weather:       simnet.Weather{Delay: []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}[r.IntN(4)]},
		workers:       2 + r.IntN(6),
		pace:          []time.Duration{20, 200, 1000}[r.IntN(3)] * time.Millisecond,
		leaseMax:      []time.Duration{time.Second, 8 * time.Second, 30 * time.Second}[r.IntN(3)],
	}
	if r.IntN(4) == 0 {
		p.nodes = 5
	}
	p.restore = r.IntN(4) == 0
	for range p.nodes {
		p.wal = append(p.wal, 4<<(10+2*r.IntN(3))) // small, so that they change often
	}
	mixes := slices.Sorted(maps.Keys(soakMixes()))
	p.mix = cmp.Or(*soakMixName, mixes[r.IntN(len(mixes))])
	if p.mix == soakMixRestores {
		p.restore = true
		if r.IntN(2) == 0 {
			p.trailing = 0 // logs keep their beginning
		}
	}
	return p
}

// soakMember is one place in the cluster: the data that outlive a restart, and the node that
// runs there.
type soakMember struct {
	name  string
	host  string   // its place in the network: its name, until it moves
	told  []string // Config.Join
	disk  *soakDisk
	clock *soakClock

	mu    sync.Mutex
	node  *Node        // guarded by mu; nil while stopped, and once it has crashed
	ghost *Node        // guarded by mu; a crashed node, which goes on without being heard
	loops atomic.Int32 // 1: the node ended itself because of a loop of restores
	// mayDiffer is true when the node may find out that it differs, otherHistory when it has
	// to refuse what it is sent, oldCopy when its folder is put back from an old copy, and
	// ended once it has ended itself because of that.
	mayDiffer, otherHistory, oldCopy, ended atomic.Bool
}

// running returns the node, nil while it is stopped. Any goroutine may call it.
func (m *soakMember) running() *Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node
}

// soakClock is a node's clock: its wall clock can be made to jump, and it runs slightly too
// fast or too slow.
type soakClock struct {
	start time.Time
	rate  float64 // extra seconds per second, within claimq's limits
	skew  atomic.Int64
}

func (c *soakClock) Wall() int64 { return time.Now().UnixNano() + c.skew.Load() }

func (c *soakClock) Mono() time.Duration {
	d := time.Since(c.start)
	return d + time.Duration(float64(d)*c.rate)
}

// soakLog records everything that happens, with the virtual time. It is a file, because a
// test that cannot continue loses its memory.
type soakLog struct {
	start time.Time
	path  string
	mu    sync.Mutex
	file  *os.File // guarded by mu
}

func newSoakLog(path string) (*soakLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &soakLog{start: time.Now(), path: path, file: f}, nil
}

// Write writes a line of a node's logger.
func (l *soakLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := fmt.Fprintf(l.file, "%11.6f ", time.Since(l.start).Seconds()); err != nil {
		return 0, err
	}
	return l.file.Write(b)
}

func (l *soakLog) event(format string, args ...any) {
	_, _ = l.Write(fmt.Appendf(nil, "-- "+format+"\n", args...))
}

// text returns the whole log.
func (l *soakLog) text() string {
	b, err := os.ReadFile(l.path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// newSoakCluster starts a cluster with everything below dir. Without a plan, the seed
// decides.
func newSoakCluster(t *testing.T, seed uint64, dir string, plan *soakPlan) *soakCluster {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	c := &soakCluster{t: t, random: random, plan: newSoakPlan(random)}
	if plan != nil {
		c.plan = *plan
	}
	var err error
	if c.log, err = newSoakLog(filepath.Join(dir, soakEvents)); err != nil {
		t.Fatal(err)
	}
	c.entries.fail = c.report
	c.manners.random = rand.New(rand.NewPCG(seed, 8))
	c.network = simnet.New(seed, c.plan.weather)
	c.log.event("seed %d: %+v", seed, c.plan)
	for i := range c.plan.nodes {
		name := fmt.Sprintf("n%d", i+1)
		m := &soakMember{
			name:  name,
			host:  name,
			disk:  &soakDisk{path: filepath.Join(dir, name), nodeID: name, wal: c.plan.wal[i], entries: &c.entries},
			clock: &soakClock{start: time.Now(), rate: (random.Float64()*2 - 1) * 0.0005},
		}
		uuid, err := m.disk.uuid()
		if err != nil {
			t.Fatal(err)
		}
		c.servers = append(c.servers, raft.Server{ID: raft.ServerID(uuid), Address: raft.ServerAddress(name)})
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		c.start(m)
	}
	return c
}

func (c *soakCluster) place(m *soakMember) int {
	for i, other := range c.members {
		if other == m {
			return i
		}
	}
	return -1
}

// fail ends the test. Any goroutine of the test itself may call it.
func (c *soakCluster) fail(format string, args ...any) {
	c.t.Helper()
	c.report(format, args...)
	c.t.FailNow()
}

// report makes the test fail at the next check. It is for a node's goroutine, which may hold
// locks and continues.
func (c *soakCluster) report(format string, args ...any) {
	c.t.Helper()
	c.log.event(format, args...)
	c.t.Errorf(format, args...)
}

// restartLooped restarts the nodes that ended themselves, and returns their number.
func (c *soakCluster) restartLooped() int {
	count := 0
	for _, m := range c.members {
		if m.loops.Load() != 0 {
			c.stop(m, 0)
			c.start(m)
			count++
		}
	}
	return count
}

// calm ends every fault of the network.
func (c *soakCluster) calm() {
	c.network.SetWeather(c.plan.weather)
	c.network.Release()
	c.manners.set([soakKinds]soakManner{})
	c.rough.Store(false)
}

// heal ends every fault, and starts all stopped nodes.
func (c *soakCluster) heal() {
	c.calm()
	for _, m := range c.members {
		m.disk.slow.Store(0)
		m.disk.disarm()
		if m.running() == nil {
			c.start(m)
		}
	}
	c.log.event("healed")
}

// leader returns the member whose node says that it leads and serves, the one of the highest
// term; nil if no node does. Any goroutine may call it.
func (c *soakCluster) leader() *soakMember {
	var leader *soakMember
	var term uint64
	for _, m := range c.members {
		if n := m.running(); n != nil && n.IsLeader() && n.currentTerm() > term {
			leader, term = m, n.currentTerm()
		}
	}
	return leader
}

// close stops everything but timers that Raft's goroutines leave behind.
func (c *soakCluster) close() {
	c.network.Release()
	for _, m := range c.members {
		c.stop(m, 0)
	}
	<-time.After(time.Minute)
}

// closeLog ends the log; the caller removes its file.
func (c *soakCluster) closeLog() { _ = io.Closer(c.log.file).Close() }

// counted returns the value of a counter, or the number of a histogram's observations.
func counted(m prometheus.Metric) int64 {
	var d dto.Metric
	if m.Write(&d) != nil {
		return 0
	}
	return int64(d.GetCounter().GetValue()) + int64(d.GetHistogram().GetSampleCount())
}

// stateOf returns a node's task with that id, nil if it has none.
func stateOf(n *Node, id uint64) (task *fsm.Task) {
	n.fsm.Read(func(m *fsm.Machine) {
		if have := m.Get(id); have != nil {
			copied := *have
			task = &copied
		}
	})
	return task
}
