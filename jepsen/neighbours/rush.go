package neighbours

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/history"
)

// Once in aroundEvery all readers rush, and then crowd, one node.
const (
	aroundEvery = 6 * time.Second
	// In a rush, from rushAt on for rushFor, they ask for the same page again and again, and so
	// does one that has a key of its own. Keys take turns, so that it waits for few of the others.
	rushAt, rushFor = 3500 * time.Millisecond, time.Second
	// In a crowd, from crowdAt on, they ask for a large page, and read it slowly: answers are
	// large in memory until somebody has read them.
	crowdAt = 5 * time.Second

	// rushBytes are in an answer that takes the node far longer than its request does: from some
	// 500 events on.
	rushBytes = 100 << 10
	// alonePause is how often the one with its own key looks whether there is a rush.
	alonePause = 20 * time.Millisecond
)

// phase is what readers do together.
type phase string

// The phases; "" = each asks what it likes.
const (
	rushes phase = "rushes"
	crowds phase = "crowds"
)

// phase returns what readers do now, and the node that they do it to.
func (n *Neighbours) phase() (node string, now phase) {
	since := time.Since(n.began)
	node = n.cfg.Nodes[int(since/aroundEvery)%len(n.cfg.Nodes)]
	switch since %= aroundEvery; {
	case since >= crowdAt:
		return node, crowds
	case since >= rushAt && since < rushAt+rushFor && n.cfg.mayRush(runtime.NumCPU()):
		return node, rushes
	}
	return node, ""
}

// rushPerCore is how many readers a rush takes for each core: a node answers several at a time if it
// has more than two.
const rushPerCore = 4

// mayRush reports whether readers rush on a machine with so many cores: they must be enough to wait
// for each other, and a network of ours carries less than the nodes answer.
func (c *Config) mayRush(cores int) bool { return c.Dial == nil && c.Readers >= rushPerCore*cores }

// rushed is the page: as the node has it, since what waits for other nodes waits for no turn.
var rushed = heavy{"/api/events?limit=1000&after=0&consistency=stale", "events"}

// rush is what readers tell of the rushes.
type rush struct {
	waiting atomic.Int64 // readers that are not answered yet

	mu  sync.Mutex // guards what follows
	all map[int]*history.Rush
}

// readsMax bounds the reads of a rush that are told of, the first ones of the crowd and of the one
// beside it.
const readsMax = 2_000

// add notes how long a read took that was made in the rush of that number and answered at now.
func (r *rush) add(number int, inCrowd bool, took, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.all[number]
	if one == nil {
		one = &history.Rush{At: now - took}
		r.all[number] = one
	}
	one.At, one.To = min(one.At, now-took), max(one.To, now)
	reads := &one.Alone
	if inCrowd {
		reads = &one.Crowd
	}
	if len(*reads) < readsMax {
		*reads = append(*reads, took)
	}
}

// said returns the rushes, once they are over.
func (r *rush) said() (all []history.Rush) {
	for _, number := range slices.Sorted(maps.Keys(r.all)) {
		all = append(all, *r.all[number])
	}
	return all
}

// askInRush makes one read in a rush, by one of the crowd or by the one beside it, and notes how
// long it took if half of the readers or more waited when it began and when it ended. It reports
// whether it was answered with what was asked for.
func (r *reader) askInRush(ctx context.Context, node string, inCrowd bool) (good bool) {
	rush, number := &r.rush, int(time.Since(r.began)/aroundEvery)
	if inCrowd {
		rush.waiting.Add(1)
		defer rush.waiting.Add(-1)
	}
	waited := rush.waiting.Load()
	if good = r.ask(ctx, node, rushed, false); good && r.got >= rushBytes && min(waited, rush.waiting.Load()) > int64(r.cfg.Readers/2) {
		rush.add(number, inCrowd, int64(r.took), r.rec.Now())
	}
	return good
}

// readAlone asks in the rushes, until ctx ends.
func (r *reader) readAlone(ctx context.Context) {
	for pause.For(ctx, alonePause) {
		for node, now := r.phase(); now == rushes && r.askInRush(ctx, node, false); node, now = r.phase() {
		}
	}
}
