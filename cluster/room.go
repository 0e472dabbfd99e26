package cluster

import (
	"fmt"

	"github.com/claimq/claimq/cluster/replica"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// What may take how much of the memory limit, as parts of it: a fourth, and so on.
const (
	// Ended tasks may take this part, and so may what is remembered of removed tasks
	// and of claim requests. What is above it goes, and evictPart of the limit more,
	// so that it is not done for each.
	endedPart      = 4
	rememberedPart = 4
	evictPart      = 64
	// They make way, ended tasks first, down to evictPart, when the whole state comes this near to the
	// limit: so they are never the reason to refuse a submit.
	aheadPart = 16
	// strainPart is how far the state may be above the limit, by what goes on there:
	// claims, settles, their follow-ups, and ended tasks that are not evicted yet.
	strainPart = 8
)

// evicts reports whether ended tasks are to be evicted.
func (n *Node) evicts(s replica.Held) bool {
	return s.Ended > endedMax(n.cfg.MemoryLimit, s.All-s.Ended) && n.checkLevel(command.Evict{}) == nil
}

// forgets reports whether what is remembered is to be forgotten before its time.
func (n *Node) forgets(s replica.Held) bool {
	return s.Remembered > rememberedMax(n.cfg.MemoryLimit, s.Lasting()) && n.checkLevel(command.Forget{}) == nil
}

// endedMax returns how many bytes ended tasks may take beside those that the rest
// of the state takes.
func endedMax(limit, rest int64) int64 {
	room := limit - limit/aheadPart - rest
	return max(min(limit/endedPart, room), limit/evictPart)
}

// rememberedMax returns how many bytes may be remembered of removed tasks and of claim
// requests beside what lasts.
func rememberedMax(limit, lasting int64) int64 {
	room := limit - limit/aheadPart - limit/evictPart - lasting
	return max(min(limit/rememberedPart, room), limit/evictPart)
}

// memoryFull returns an *fsm.Overload if the memory limit is reached.
func (n *Node) memoryFull(strained bool) error {
	return memoryFull(n.fsm.Held(), n.cfg.MemoryLimit, n.checkLevel(command.Evict{}) == nil, strained)
}

// memoryFull returns an *fsm.Overload if held reaches the limit: what can be
// evicted does not count, if it is evicted at all, unless it is not for long. strained
// asks for what goes on there.
func memoryFull(held replica.Held, limit int64, evicts, strained bool) error {
	all, lasting := held.All, held.Lasting()
	if all <= limit {
		return nil
	}
	if !evicts {
		lasting = all
	}
	if all <= limit+limit/strainPart && (strained || lasting <= limit) {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundMemory,
		Text:  fmt.Sprintf("the tasks take %s of memory, %s without what goes by itself; memory_limit is %s", bytesize.Text(all), bytesize.Text(lasting), bytesize.Text(limit)),
	}
}

// growth says what a command adds to the state.
type growth uint8

const (
	growsLittle  growth = iota // claims, settles and what operators do: nothing, or a bounded little
	growsBySteps               // a complete with follow-ups: refused later, as it also settles
	growsByTasks               // submits, and schedules: they hold a whole task
)

func growthOf(cmd command.Command) growth {
	about, most := command.AboutOf(cmd), growsLittle
	if len(about.Submits) > 0 {
		most = growsByTasks
		if _, completes := cmd.(command.Complete); completes {
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
func (n *Node) room(cmd command.Command) error {
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
		return &nodes.Overload{Bound: nodes.BoundDisk, Text: "so many voters' disks are low that no majority may be left"}
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
