package replica

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// The parts of the memory limit: 4 means a fourth, and so on.
const (
	// Ended tasks may take endedPart, and remembered removed tasks and claim requests
	// rememberedPart. Anything beyond is removed, and evictPart of the limit more, so that it does
	// not happen for each command.
	endedPart      = 4
	rememberedPart = 4
	evictPart      = 64
	// When the whole state comes this close to the limit, these are reduced, ended tasks first,
	// down to evictPart, so that they are never the reason to refuse a submit.
	aheadPart = 16
	// strainPart is the part of the limit by which the state may exceed it, through claims,
	// settles and their follow-ups, and through ended tasks that are not evicted yet.
	strainPart = 8
)

// EvictTo returns how many bytes of ended tasks should remain, and whether there are enough more
// that the rest should be evicted.
func (s *Space) EvictTo(held Held) (bytes int64, due bool) {
	most := endedMax(s.cfg.MemoryLimit, held.All-held.Ended)
	return most - s.cfg.MemoryLimit/evictPart, held.Ended > most
}

// ForgetTo is EvictTo for remembered removed tasks and claim requests, which are then forgotten
// before their time.
func (s *Space) ForgetTo(held Held) (bytes int64, due bool) {
	most := rememberedMax(s.cfg.MemoryLimit, held.Lasting())
	return most - s.cfg.MemoryLimit/evictPart, held.Remembered > most
}

// endedMax returns how many bytes ended tasks may take, given the size of the rest of the state.
func endedMax(limit, rest int64) int64 {
	room := limit - limit/aheadPart - rest
	return max(min(limit/endedPart, room), limit/evictPart)
}

// rememberedMax returns how many bytes remembered tasks and requests may take, given the size of
// what lasts.
func rememberedMax(limit, lasting int64) int64 {
	room := limit - limit/aheadPart - limit/evictPart - lasting
	return max(min(limit/rememberedPart, room), limit/evictPart)
}

// memoryFull returns a *nodes.Overload if the memory limit is reached.
func (s *Space) memoryFull(strained bool) error {
	return memoryFull(s.cfg.Held(), s.cfg.MemoryLimit, strained)
}

// memoryFull returns a *nodes.Overload if held reaches the limit. Tasks that can be evicted do
// not count if the excess is small. strained asks for commands that must go
// on.
func memoryFull(held Held, limit int64, strained bool) error {
	all, lasting := held.All, held.Lasting()
	if all <= limit {
		return nil
	}
	if all <= limit+limit/strainPart && (strained || lasting <= limit) {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundMemory,
		Text:  fmt.Sprintf("the tasks take %s of memory, %s without what goes by itself; memory_limit is %s", bytesize.Text(all), bytesize.Text(lasting), bytesize.Text(limit)),
	}
}

// shortErrorBytes is the length to which the error of a Fail is cut while memory is full, because
// tasks that fail repeatedly keep up to 20 of them.
const shortErrorBytes = 256

// Shorten returns the command to propose: with short errors while memory is full.
func (s *Space) Shorten(cmd command.Command) command.Command {
	switch c := cmd.(type) {
	case command.Fail:
		if len(c.Error) > shortErrorBytes && s.memoryFull(false) != nil {
			c.Error = strings.ToValidUTF8(c.Error[:shortErrorBytes], "") // at a whole character
			return c
		}
	case command.Batch:
		if s.memoryFull(false) == nil {
			return cmd
		}
		c.Ops = slices.Clone(c.Ops)
		for i, op := range c.Ops {
			c.Ops[i] = s.Shorten(op)
		}
		return c
	}
	return cmd
}

// AdmitState refuses a state that would take more memory than allowed.
func (s *Space) AdmitState(bytes int64) error {
	limit := s.cfg.MemoryLimit
	if bytes <= limit+limit/strainPart {
		return nil
	}
	return &nodes.Overload{
		Bound: nodes.BoundMemory,
		Text:  fmt.Sprintf("the backup's state takes %s of memory; memory_limit is %s", bytesize.Text(bytes), bytesize.Text(limit)),
	}
}

// growth says how much a command adds to the state.
type growth uint8

const (
	growsLittle  growth = iota // claims, settles and operators' commands: nothing, or a bounded amount
	growsBySteps               // a complete with follow-ups: refused later, because it also settles
	growsByTasks               // submits and schedules: each contains a whole task
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
