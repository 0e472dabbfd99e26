package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claimq/claimq/jepsen/history"
)

// Bounds for a node under this load: many times what it needs, and for memory twice its limit. Each
// heavy reader may use a few more connections: its own, and one that forwards it to the leader.
const (
	bytesMax      = 2 * history.MemoryLimit
	filesMax      = 1000
	goroutinesMax = 2000
	// Bounds once the callers have stopped.
	filesIdleMax      = 300
	goroutinesIdleMax = 500
	ofReader          = 4
)

// equality checks that all nodes have the same tasks and the same trail at the end.
func equality(h *history.History) Part {
	p := Part{Name: "equality"}
	for i := range h.Dumps {
		d, first := &h.Dumps[i], &h.Dumps[0]
		if d.Index != first.Index {
			p.Violate(RuleEqual, 0, nil, "at the end %s stands at index %d and %s at %d, though nothing was written any more", first.Node, first.Index, d.Node, d.Index)
		}
		if d.Hash != first.Hash {
			p.Violate(RuleEqual, 0, nil, "at index %d %s holds %d tasks and %s holds %d, and they differ: %s", d.Index, first.Node, first.Tasks, d.Node, d.Tasks, d.Differs)
		}
		if d.TrailHash != first.TrailHash || d.Events != first.Events {
			p.Violate(RuleTrailEqual, 0, nil, "%s tells %d events and %s tells %d, and they differ: %s", first.Node, first.Events, d.Node, d.Events, d.TrailDiffers)
		}
	}
	if len(h.Dumps) != h.Run.Nodes {
		p.Violate(RuleEqual, 0, nil, "%d of %d nodes could be read at the end", len(h.Dumps), h.Run.Nodes)
	}
	if len(h.Dumps) > 0 {
		p.Summary = fmt.Sprintf("%d nodes, %d tasks and %d events each at index %d", len(h.Dumps), h.Dumps[0].Tasks, h.Dumps[0].Events, h.Dumps[0].Index)
	}
	return p
}

// storageFailed is the exit code of a node whose disk fails. It exits at once instead of trying
// again.
const storageFailed = 70

// startFailed is the exit code of a node that cannot start.
const startFailed = 1

// processes checks that no process exited by itself, answered with an internal error, or grew
// without bound.
func processes(h *history.History) Part {
	p := Part{Name: "processes"}
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Exited && !excused(h, e.Code, e.At) {
			p.Violate(RuleExit, 0, nil, "%s ended by itself with exit code %d at %s: %s", e.Node, e.Code, clock(e.At), e.Text)
		}
	}
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Code == "internal" || op.Code == "odd_answer" {
			p.Violate(RuleInternal, op.TaskID, []int{i}, "an answer that is a bug: %s", op.Code)
		}
	}
	filesMax, goroutinesMax := filesMax, goroutinesMax
	if n := h.Run.Neighbours; n != nil {
		filesMax, goroutinesMax = filesMax+ofReader*n.Readers, goroutinesMax+ofReader*n.Readers
	}
	var most history.Sample // At is when a bound was first exceeded, 0 = never
	last := map[string]*history.Sample{}
	for i := range h.Samples {
		s := &h.Samples[i]
		if !s.Up {
			continue
		}
		most.Bytes, most.Files, most.Goroutines = max(most.Bytes, s.Bytes), max(most.Files, s.Files), max(most.Goroutines, s.Goroutines)
		if most.At == 0 && (s.Bytes > bytesMax || s.Files > filesMax || s.Goroutines > goroutinesMax) {
			most.At = s.At
		}
		last[s.Node] = s
		if s.Panics > 0 {
			p.Violate(RuleInternal, 0, nil, "%s has panicked %d times while answering", s.Node, s.Panics)
		}
	}
	if most.At != 0 {
		p.ViolateAt(most.At, RuleBounds, "a node had %d MiB, %d files, %d goroutines; %d MiB, %d, %d are the most allowed",
			most.Bytes>>20, most.Files, most.Goroutines, bytesMax>>20, filesMax, goroutinesMax)
	}
	for _, s := range last {
		if s.Files > filesIdleMax || s.Goroutines > goroutinesIdleMax {
			p.Violate(RuleBounds, 0, nil, "%s has %d files and %d goroutines after everybody has gone; %d and %d are the most allowed",
				s.Node, s.Files, s.Goroutines, filesIdleMax, goroutinesIdleMax)
		}
	}
	p.Summary = fmt.Sprintf("at most %d MiB, %d files, %d goroutines", most.Bytes>>20, most.Files, most.Goroutines)
	return p
}

// exitCodes returns the codes with which a node may exit after a fault of this name. A disk that
// fails, hangs or is full makes it exit at once. It also refuses to start on a full disk, with
// rotted bytes, in a wiped folder, or once it was removed.
func exitCodes(fault string) (all []int) {
	for kind, codes := range map[string][]int{
		"eio": {storageFailed}, "disk-hung": {storageFailed}, "disk-full": {storageFailed, startFailed}, "disk-rot": {storageFailed, startFailed},
		"member-wiped": {startFailed}, "member-removed": {startFailed},
	} {
		if strings.Contains(fault, kind) {
			all = append(all, codes...)
		}
	}
	return all
}

// excused reports whether a fault injected before at explains an exit with this code.
func excused(h *history.History, code int, at int64) bool {
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.Injected && e.At <= at && slices.Contains(exitCodes(e.Fault), code) {
			return true
		}
	}
	return false
}
