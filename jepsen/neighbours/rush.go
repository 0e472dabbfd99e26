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
	// In a rush, from rushAt on for rushFor, they ask for the same page again and again, and
	// so does one with another key. Keys take turns, so that it waits for few of the others.
	rushAt, rushFor = 3500 * time.Millisecond, time.Second
	// In a crowd, from crowdAt on, they ask for a large page, and read it slowly: answers are
	// large in memory until somebody has read them.
	crowdAt = 5 * time.Second

	// rushBytes are in an answer that takes the node far longer than its request does: from some
	// 500 events on.
	rushBytes = 100 << 10
	// alonePause is the pause of the reader with its own key between checks for a rush.
	alonePause = 20 * time.Millisecond
)

// phase is an activity that readers share.
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

// rushPerCore is the number of readers per core that a rush needs, because a node with more than
// two cores answers several reads at a time.
const rushPerCore = 4

// mayRush reports whether readers rush on a machine with this number of cores. There must be enough
// of them to wait for each other, and a simulated network carries less than the nodes can answer.
func (c *Config) mayRush(cores int) bool { return c.Dial == nil && c.Readers >= rushPerCore*cores }

// rushed is the page: as the node has it, since what waits for other nodes waits for no turn.
var rushed = heavy{"/api/events?limit=1000&after=0&consistency=stale", "events"}

// rush holds the measured reads of the rushes.
type rush struct {
	waiting atomic.Int64 // readers that are not answered yet

	mu  sync.Mutex // guards what follows
	all map[int]*history.Rush
}

// readsMax bounds the recorded reads of a rush, separately for the crowd and for the lone reader.
const readsMax = 2_000

// add records the duration of a read in the given rush that was answered at now.
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

// said returns the measured rushes. Call it after they are over.
func (r *rush) said() (all []history.Rush) {
	for _, number := range slices.Sorted(maps.Keys(r.all)) {
		all = append(all, *r.all[number])
	}
	return all
}

// askInRush makes one read in a rush, for the crowd or for the lone reader. It records the duration
// if at least half of the readers were waiting both when the read began and when it ended. It
// reports whether the expected answer came.
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
