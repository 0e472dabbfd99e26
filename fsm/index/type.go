package index

import (
	"github.com/claimq/claimq/fsm/record"
)

// Type holds what can be claimed of one task type, and what holds claims back.
type Type struct {
	Of any // the caller's own data of the type; not used here

	inTypes slot              // in the ranking of types
	name    string            // shared by all its tasks
	oldest  uint64            // result of Oldest; set by place
	next    uint64            // result of OldestOpen; set by place
	claimed int64             // number of claimed tasks
	record  *record.TaskType  // nil if it has no settings
	groups  map[string]*group // groups with tasks that have not ended; nil until there is one
	behind  IDs               // pending tasks held back by their group

	// The claimable tasks, regardless of the type's own limits: those without share key in
	// stock, and all in the ranking, in which stock competes with the open shares.
	stock
	ranking ranking
	shares  *shares          // nil until a task has a share key
	ready   int              // tasks in stock and in open shares
	turns   *turns           // of the shares, and stock; nil unless the type is fair
	weights map[string]int32 // of share keys that do not have the default

	// The limits of each share that the shares were settled for; 0 = none.
	perKey     int32
	ratePerKey int64

	rungs []*rung // its queues in Types.ladder, by attempts left
	stale int     // 1-based index in Types.stale; 0 if not in it

	standing standing
	opensAt  int64 // while standing is waits
	added    int   // tasks that became claimable since the type was last placed
	noted    int   // index in Types.noted, if it is there
	bytes    int64 // its part of Types.bytes, without its groups
}

// Name returns the type's name. All its tasks share this string.
func (ts *Type) Name() string { return ts.name }

// Record returns the type's settings and what is saved with them, or nil.
func (ts *Type) Record() *record.TaskType { return ts.record }

// seat implements contender.
func (ts *Type) seat() *slot { return &ts.inTypes }

// rank returns the rank of the type's first task, if it is open.
func (ts *Type) rank(o order) rank {
	if ts.standing != open {
		return noRank
	}
	return ts.ranking.rank(o)
}

// Oldest returns the id of the oldest pending task, or 0.
func (ts *Type) Oldest() uint64 { return ts.oldest }

// OldestOpen returns the id of the oldest task that could be claimed if the type itself had no limits,
// or 0.
func (ts *Type) OldestOpen() uint64 { return ts.next }

// Ready returns how many tasks could be claimed if the type itself had no limits.
func (ts *Type) Ready() int { return ts.ready }

// findOldest computes the results of Oldest and OldestOpen.
func (ts *Type) findOldest() {
	id, _ := ts.ranking.first(oldest)
	ts.next = id
	if held, ok := ts.behind.Min(); ok && (id == 0 || held < id) {
		id = held
	}
	if ts.shares != nil {
		if held, ok := ts.shares.held.Min(); ok && (id == 0 || held < id) {
			id = held
		}
	}
	ts.oldest = id
}

// add adds a claimable task. The type must be settled and placed afterwards.
func (ts *Type) add(t *record.Task) {
	if key := t.Opts().ShareKey; key != "" {
		sh := ts.shareOf(key)
		sh.add(t)
		ts.touch(&sh.stock, t.Priority)
		return
	}
	ts.stock.add(t)
	ts.ranking.change(ts.slot)
	ts.touch(&ts.stock, t.Priority)
	ts.ready++
	ts.added++
}

// remove takes a claimable task out. The type must be settled and placed afterwards.
func (ts *Type) remove(t *record.Task) {
	if key := t.Opts().ShareKey; key != "" {
		sh := ts.shareOf(key)
		sh.remove(t)
		ts.touch(&sh.stock, t.Priority)
		return
	}
	ts.stock.remove(t)
	ts.ranking.change(ts.slot)
	ts.touch(&ts.stock, t.Priority)
	ts.ready--
}

// Ahead returns how many ready tasks of its share a claim by priority takes before t, which
// is one of them.
func (ts *Type) Ahead(t *record.Task) int64 {
	return ts.stockOf(t.Opts().ShareKey).ahead(t)
}
