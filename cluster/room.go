package cluster

import (
	"fmt"

	"github.com/claimq/claimq/fsm"
)

// What may take how much of the memory limit, as parts of it: a fourth, and so on.
const (
	// Ended tasks may take this part. What is above it is evicted, and evictPart of
	// the limit more, so that it is not done for each.
	endedPart = 4
	evictPart = 64
	// They make way, down to evictPart, when the whole state comes this near to the
	// limit: so they are never the reason to refuse a submit.
	aheadPart = 16
	// strainPart is how far the state may be above the limit, by what goes on there:
	// claims, settles, their follow-ups, and ended tasks that are not evicted yet.
	strainPart = 8
)

// evicts reports whether ended tasks are to be evicted from a state that takes all
// bytes, ended of them for ended tasks.
func (n *Node) evicts(all, ended int64) bool {
	return ended > endedMax(n.cfg.MemoryLimit, all-ended) && n.checkLevel(fsm.Evict{}) == nil
}

// endedMax returns how many bytes ended tasks may take beside those that the rest
// of the state takes.
func endedMax(limit, rest int64) int64 {
	room := limit - limit/aheadPart - rest
	return max(min(limit/endedPart, room), limit/evictPart)
}

// memoryFull returns an *fsm.Overload if the memory limit is reached: what can be
// evicted does not count, unless it is not evicted for long. strained asks for what
// goes on there.
func (n *Node) memoryFull(strained bool) error {
	all, limit := n.fsm.bytes.Load(), n.cfg.MemoryLimit
	if all <= limit {
		return nil
	}
	lasting := all - n.fsm.ended.Load()
	if n.checkLevel(fsm.Evict{}) != nil {
		lasting = all
	}
	if all <= limit+limit/strainPart && (strained || lasting <= limit) {
		return nil
	}
	return &fsm.Overload{
		Bound: fsm.BoundMemory,
		Text:  fmt.Sprintf("the tasks take %d bytes of memory, %d without those that have ended; memory_limit is %d", all, lasting, limit),
	}
}

// growth says what a command adds to the state.
type growth uint8

const (
	growsLittle  growth = iota // claims, settles and what operators do: nothing, or a bounded little
	growsBySteps               // a complete with follow-ups: refused later, as it also settles
	growsByTasks               // submits, and schedules: they hold a whole task
)

func growthOf(cmd fsm.Command) growth {
	about, most := fsm.AboutOf(cmd), growsLittle
	if len(about.Submits) > 0 {
		most = growsByTasks
		if _, completes := cmd.(fsm.Complete); completes {
			most = growsBySteps
		}
	}
	for _, op := range about.Ops {
		most = max(most, growthOf(op))
	}
	return most
}

// room returns an *fsm.Overload when there is no room for what the command adds to
// the state, in memory or on disk.
func (n *Node) room(cmd fsm.Command) error {
	switch growthOf(cmd) {
	case growsByTasks:
		return n.full()
	case growsBySteps:
		return n.strained()
	}
	return nil
}

// full returns an *fsm.Overload when a bound of memory or disk is reached. Only what
// adds tasks asks: claims and settles make room.
func (n *Node) full() error {
	if err := n.memoryFull(false); err != nil {
		return err
	}
	if err := n.disk.full(false); err != nil {
		return err
	}
	if l := n.leader.Load(); l != nil && l.disksLow.Load() {
		return &fsm.Overload{Bound: fsm.BoundDisk, Text: "so many voters' disks are low that no majority may be left"}
	}
	return nil
}

// strained is full for what goes on a while longer.
func (n *Node) strained() error {
	if err := n.memoryFull(true); err != nil {
		return err
	}
	return n.disk.full(true)
}
