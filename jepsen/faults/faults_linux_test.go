package faults

import (
	"context"
	"errors"
	"math/rand"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/jepsen/hosts"
)

// After each fault in the catalog the cluster recovers by itself. Processes that are asked to end
// do so without a failure.
func TestCatalog(t *testing.T) {
	t.Parallel()
	r := start(t, true, Config{Exited: func(n *procs.Node) {
		if code := n.ExitCode(); code != 0 {
			t.Errorf("%s has ended with exit code %d:\n%s", n.ID, code, n.LogTail(5))
		}
	}})
	for _, f := range Catalog() {
		began := time.Now()
		recover := r.inject(f.Name())
		recover()
		r.whole()
		t.Logf("%s: whole after %v", f.Name(), time.Since(began))
	}
}

func TestPartition(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"partition-leader", "partition-leader-mute"} {
		t.Run(fault, func(t *testing.T) {
			r := start(t, true, Config{})
			old := r.leader()
			recover := r.inject(fault)
			r.leader(old)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if id, err := r.submit(ctx, old); err == nil {
				t.Errorf("the leader that was cut off acknowledged task %d", id)
			}
			recover()
			r.whole()
		})
	}
}

// Each shape cuts exactly the links that it should.
func TestNetwork_shapes(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 5} {
		c := &Cluster{Cluster: &procs.Cluster{}}
		for range nodes {
			c.Nodes = append(c.Nodes, &procs.Node{})
		}
		majority := nodes/2 + 1
		for seed := range int64(20) {
			rng := rand.New(rand.NewSource(seed))
			some, mixed := one(t.Context(), c, rng), shuffled(t.Context(), c, rng)
			shape, _ := isolate(c, some)
			expect(t, "isolate", len(shape), 2*(nodes-1))
			shape, _ = deaf(c, some)
			expect(t, "deaf", len(shape), nodes-1)
			shape, _ = mute(c, some)
			expect(t, "mute", len(shape), nodes-1)
			shape, _ = split(c, mixed)
			expect(t, "split", slices.Max(peers(nodes, shape)), majority-1)
			expect(t, "split", slices.Min(peers(nodes, shape)), nodes-majority-1)
			shape, _ = bridge(c, mixed)
			expect(t, "bridge", slices.Max(peers(nodes, shape)), nodes-1)
			expect(t, "bridge", slices.Min(peers(nodes, shape)), nodes/2)
			shape, _ = ring(c, mixed)
			if nodes > 3 {
				expect(t, "ring", slices.Max(peers(nodes, shape)), 2)
			}
			expect(t, "ring", slices.Min(peers(nodes, shape)), min(nodes/2, 2))
		}
	}
}

func expect(t *testing.T, what string, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// peers returns the number of others that each node can talk to.
func peers(nodes int, shape links) []int {
	count := make([]int, nodes)
	for a := 1; a <= nodes; a++ {
		for b := 1; b <= nodes; b++ {
			_, cut := shape[hosts.Link{From: a, To: b}]
			_, back := shape[hosts.Link{From: b, To: a}]
			if a != b && !cut && !back {
				count[a-1]++
			}
		}
	}
	return count
}

// Acknowledged writes survive a loss of power, even of all nodes.
func TestPower(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"power-majority", "power-all", "power-all-torn"} {
		t.Run(fault, func(t *testing.T) {
			r := start(t, true, Config{})
			acked := r.submitDuring(func() {
				r.acked(50)
				r.inject(fault)()
			})
			r.whole()
			r.has(r.Nodes[0], acked)
		})
	}
}

// submitDuring submits tasks to all nodes while f runs, and returns the ids of acknowledged ones.
func (r *rig) submitDuring(f func()) []uint64 {
	ctx, stop := context.WithCancel(r.t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acked []uint64
	for _, n := range r.Nodes {
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if id, err := r.submit(ctx, n); err == nil {
						mu.Lock()
						acked = append(acked, id)
						mu.Unlock()
					}
				}
			})
		}
	}
	f()
	stop()
	wg.Wait()
	return acked
}

// acked waits until about count more tasks have been submitted, judging by the ids.
func (r *rig) acked(count uint64) {
	r.t.Helper()
	ctx, first := r.within(patience), uint64(0)
	for {
		id, err := r.submit(ctx, r.leader())
		switch {
		case err == nil && first == 0:
			first = id
		case err == nil && id >= first+count:
			return
		case ctx.Err() != nil:
			r.t.Fatal(err)
		}
	}
}

// A node whose disk fails ends itself and says why.
func TestDisk_eio(t *testing.T) {
	t.Parallel()
	r := start(t, true, Config{})
	n := r.leader()
	recover := r.inject("disk-eio-leader")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n.Running() && ctx.Err() == nil { // each write makes it sync
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = r.submit(attempt, n)
		cancel()
	}
	if err := n.WaitExit(ctx); err != nil {
		t.Fatal(err)
	}
	if code := n.ExitCode(); code != 70 {
		t.Errorf("exit code %d, want 70", code)
	}
	if tail := n.LogTail(5); !strings.Contains(tail, "input/output error") {
		t.Errorf("it said:\n%s", tail)
	}
	recover()
	r.whole()
}

func TestDisk_slow(t *testing.T) {
	t.Parallel()
	r := start(t, true, Config{})
	recover := r.inject("disk-slow-all")
	began := time.Now()
	for {
		if _, err := r.submit(r.within(patience), r.leader()); err == nil {
			break
		}
		began = time.Now()
	}
	if took := time.Since(began); took < slowSyncMin {
		t.Errorf("a write took %v while each sync takes %v or more", took, slowSyncMin)
	}
	recover()
	r.whole()
}

func TestPause(t *testing.T) {
	t.Parallel()
	r := start(t, false, Config{})
	old := r.leader()
	recover := r.inject("pause-leader")
	r.leader(old)
	if !old.Running() {
		t.Error("the node does not run")
	}
	recover()
	r.whole()
	if pid := old.PID(); !old.Running() || pid == 0 {
		t.Error("the node was restarted")
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	r := start(t, false, Config{})
	recover := r.inject("kill-all")
	for _, n := range r.Nodes {
		if n.Running() || n.ExitCode() != 128+9 {
			t.Errorf("%s: running %v, exit code %d", n.ID, n.Running(), n.ExitCode())
		}
	}
	recover()
	r.whole()
}

func TestRolling(t *testing.T) {
	t.Parallel()
	r := start(t, false, Config{})
	before := map[int]bool{}
	for _, n := range r.Nodes {
		before[n.PID()] = true
	}
	r.inject("rolling-restart")()
	r.whole()
	for _, n := range r.Nodes {
		if before[n.PID()] {
			t.Errorf("%s was not restarted", n.ID)
		}
	}
}

// Another fault's recovery does not start a node without power.
func TestTogether(t *testing.T) {
	t.Parallel()
	r := start(t, true, Config{})
	off := r.inject("power-one")
	r.inject("kill-all")()
	running := 0
	for _, n := range r.Nodes {
		if n.Running() {
			running++
		}
	}
	if running != 2 {
		t.Errorf("%d nodes run, want those two that have power", running)
	}
	off()
	r.whole()
	r.inject("partition-leader+kill-one+net-slow")()
	r.whole()
}

func TestInject_needs(t *testing.T) {
	t.Parallel()
	r := start(t, false, Config{})
	for _, name := range []string{"net-loss", "net-narrow-one", "power-all", "kill-one+power-one"} {
		list, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := list[0].Inject(t.Context(), r.Cluster, rand.New(rand.NewSource(1))); !errors.Is(err, ErrNeeds) {
			t.Errorf("%s without hosts and disks: %v, want ErrNeeds", name, err)
		}
	}
}

// If one of several faults cannot be injected, those before it are undone in reverse order.
func TestTogether_fails(t *testing.T) {
	t.Parallel()
	var undone []string
	begins := func(name string) Fault {
		return Fault{name: name, act: func(context.Context, *Cluster, []*procs.Node, *rand.Rand) (undo, error) {
			return func(ctx context.Context) error { undone = append(undone, name); return ctx.Err() }, nil
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errFails := errors.New("it cannot be")
	fails := Fault{name: "c", act: func(context.Context, *Cluster, []*procs.Node, *rand.Rand) (undo, error) { return nil, errFails }}
	recover, err := Together(begins("a"), begins("b"), fails, begins("d")).Inject(ctx, &Cluster{}, nil)
	if recover != nil || !errors.Is(err, errFails) || errors.Is(err, context.Canceled) || strings.Join(undone, "") != "ba" {
		t.Errorf("%v, undone %v; want %v, and b before a undone in a context that goes on", err, undone, errFails)
	}
}

// If New fails, it takes down everything that it made.
func TestNew_fails(t *testing.T) {
	t.Parallel()
	dir, root := t.TempDir(), os.Geteuid() == 0
	for _, cfg := range []Config{{}, {Hosts: root}, {Disks: root}} {
		cfg.Binary, cfg.Dir, cfg.Nodes = "claimq", dir, 10
		if c, err := New(t.Context(), cfg); c != nil || err == nil {
			t.Errorf("a cluster of ten: %v, %v", c, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), dir) {
		t.Errorf("a disk is mounted still (%v)", err)
	}
}

func TestGround(t *testing.T) {
	t.Parallel()
	for names, want := range map[string][3]bool{
		"kill-one":                        {false, false, false},
		"disk-slow-one":                   {false, true, false},
		"partition-one":                   {true, false, false},
		"power-all":                       {false, true, false},
		"kill-one net-loss":               {true, false, false},
		"pause-all kill-one+power-all":    {false, true, false},
		"log-unread-one files-few-one":    {false, false, true},
		"net-narrow-one+power-one-torn":   {true, true, false},
		"net-slow kill-all disk-eio-one":  {true, true, false},
		"rolling-restart power-one+net-*": {true, true, false},
	} {
		list, err := ByName(strings.Fields(names)...)
		if err != nil {
			t.Fatal(err)
		}
		if h, d, l := Ground(list...); h != want[0] || d != want[1] || l != want[2] {
			t.Errorf("%s: hosts %v, disks %v, logs %v; want %v", names, h, d, l, want)
		}
	}
}

func TestByName(t *testing.T) {
	t.Parallel()
	list, err := ByName("pause-*", "kill-one+partition-one")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name())
	}
	if got, want := strings.Join(names, " "), "pause-one pause-leader pause-majority pause-all kill-one+partition-one"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, name := range []string{"", "pause", "nothing-*", "kill-one+", "kill-one+nothing"} {
		if _, err := ByName(name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v, want ErrUnknown", name, err)
		}
	}
	names = Names()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(Catalog()) {
		t.Error("two faults have the same name")
	}
}

// Faults of members come one at a time, alone or in pairs.
func TestClash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"member-wiped", "member-demoted", true},
		{"member-wiped", "disk-rot-one", true},
		{"power-one+member-wiped", "member-removed", true},
		{"member-wiped", "member-transfer", false},
		{"member-wiped", "kill-leader", false},
	} {
		found, err := ByName(tt.a, tt.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := Clash(found[0], found[1]); got != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

// A node that is replaced votes before the next fault may come.
func TestReplace(t *testing.T) {
	t.Parallel()
	r := start(t, true, Config{Nodes: 3, Hosts: true})
	recover := r.inject("member-wiped")
	recover()
	leader, err := r.WaitLeader(r.within(patience))
	if err != nil {
		t.Fatal(err)
	}
	view, err := procs.View(r.within(patience), leader)
	if err != nil {
		t.Fatal(err)
	}
	voters := 0
	for _, v := range view.Nodes {
		if v.Suffrage == "voter" {
			voters++
		}
	}
	if voters != len(r.Nodes) {
		t.Errorf("%d of %d nodes vote: %+v", voters, len(r.Nodes), view.Nodes)
	}
}

// The fault determines the leader's wall clock.
func TestWall(t *testing.T) {
	t.Parallel()
	r := start(t, false, Config{Nodes: 1})
	recover := r.inject("clock-near-leader")
	ctx := r.within(patience)
	for {
		var answer struct {
			Task struct {
				CreatedAt time.Time `json:"created_at"`
			}
		}
		if err := r.call(ctx, http.MethodPost, r.Nodes[0].URL()+"/api/tasks", `{"params": 1}`, &answer); err != nil {
			t.Fatal(err)
		}
		if time.Until(answer.Task.CreatedAt) > time.Second {
			break
		}
	}
	recover()
}

// In a combination, the fault that needs a working cluster recovers last.
func TestPairs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, pair := range Pairs(500, rand.New(rand.NewSource(1))) {
		both, err := ByName(strings.Split(pair.Name(), "+")...)
		if err != nil {
			t.Fatal(err)
		}
		a, b := both[0], both[1]
		if a.Name() == b.Name() {
			t.Errorf("%s twice", a.Name())
		}
		if b.traits.has(operated) && !a.traits.has(operated) {
			t.Errorf("%s is recovered from before %s", b.Name(), a.Name())
		}
		if Clash(a, b) {
			t.Errorf("%s and %s at once", a.Name(), b.Name())
		}
		seen[a.Name()], seen[b.Name()] = true, true
	}
	want := slices.DeleteFunc(Catalog(), func(f Fault) bool { return f.traits.has(alone) })
	if len(seen) != len(want) {
		t.Errorf("%d of %d faults are in a pair", len(seen), len(want))
	}
}
