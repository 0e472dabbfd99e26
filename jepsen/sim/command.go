package sim

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/fsm"
)

// verb is what a command does.
type verb uint8

const (
	verbSubmit verb = iota
	verbClaimNext
	verbClaimTask
	verbComplete
	verbFail
	verbExtend
	verbRelease
	verbRetry
	verbDelete
	verbExpire
	verbTick
	verbCheckpoint
	verbSetNode
	verbSetLevel
)

var verbNames = [...]string{"submit", "claim next", "claim", "complete", "fail", "extend", "release", "retry", "delete", "expire", "tick", "checkpoint", "set node", "set level"}

func (v verb) String() string { return verbNames[v] }

// command is one mutation, in words of this package: what the model reads and
// what is encoded for the machine. It never changes once it was made.
type command struct {
	verb verb

	tasks []newTask // submit

	id      uint64 // all that name a task
	worker  string
	token   uint64 // 0: none was sent
	leaseMS int64
	request string // claim_request_id

	types     []string // claim next: nil = any; sorted
	byCreated bool
	ascending bool
	limit     int

	result string // complete
	opaque bool   // the result is no JSON
	reason string // fail
	add    int32  // retry

	items []leaseItem // expire

	node  string // set node
	level uint32 // set level
}

// newTask is a task as submitted.
type newTask struct {
	kind     string
	body     string
	opaque   bool
	priority int32
	max      int32 // -1: the default
	key      string
	leaseMS  int64
}

// leaseItem is one lease of an expire.
type leaseItem struct {
	id, token uint64
	seq       uint32
}

func (c *command) hold() fsm.Hold { return fsm.Hold{ID: c.id, WorkerID: c.worker, Token: c.token} }

// encode appends the command as the log holds it.
func (c *command) encode(b []byte) []byte { return fsm.AppendCommand(b, c.real()) }

// real returns the command in the machine's words.
func (c *command) real() fsm.Command {
	switch c.verb {
	case verbSubmit:
		s := fsm.Submit{Tasks: make([]fsm.NewTask, len(c.tasks))}
		for i, t := range c.tasks {
			s.Tasks[i] = fsm.NewTask{Type: t.kind, Priority: t.priority, MaxAttempts: t.max, Key: t.key, LeaseMS: t.leaseMS}
			if t.opaque {
				s.Tasks[i].Payload = []byte(t.body)
			} else {
				s.Tasks[i].Params = []byte(t.body)
			}
		}
		return s
	case verbClaimNext:
		return c.realClaimNext()
	case verbClaimTask:
		return fsm.ClaimTask{ID: c.id, WorkerID: c.worker, LeaseMS: c.leaseMS, RequestID: c.request}
	case verbComplete:
		r := fsm.Complete{Hold: c.hold()}
		if c.opaque {
			r.ResultPayload = []byte(c.result)
		} else if c.result != "" {
			r.Result = []byte(c.result)
		}
		return r
	case verbFail:
		return fsm.Fail{Hold: c.hold(), Error: c.reason}
	case verbExtend:
		return fsm.Extend{Hold: c.hold(), LeaseMS: c.leaseMS}
	case verbRelease:
		return fsm.Release{Hold: c.hold()}
	case verbRetry:
		return fsm.Retry{ID: c.id, Token: c.token, AddAttempts: c.add}
	case verbDelete:
		return fsm.Delete{ID: c.id}
	case verbExpire:
		e := fsm.Expire{Items: make([]fsm.Lease, len(c.items))}
		for i, l := range c.items {
			e.Items[i] = fsm.Lease{TaskID: l.id, Token: l.token, Seq: l.seq}
		}
		return e
	case verbTick:
		return fsm.Tick{}
	case verbCheckpoint:
		return fsm.Checkpoint{}
	case verbSetNode:
		return fsm.SetNode{Node: fsm.NodeRecord{UUID: "uuid-" + c.node, NodeID: c.node, PeerAddr: c.node + ":1", Version: "v1", Level: 1}}
	case verbSetLevel:
		return fsm.SetLevel{Level: c.level}
	}
	panic("sim: a command without a verb")
}

func (c *command) realClaimNext() fsm.ClaimNext {
	r := fsm.ClaimNext{
		WorkerID: c.worker, Types: c.types, Ascending: c.ascending,
		Limit: int32(c.limit), LeaseMS: c.leaseMS, RequestID: c.request,
	}
	if c.byCreated {
		r.SortBy = fsm.SortCreatedAt
	}
	return r
}

// String tells the command in one line, for a trace.
func (c *command) String() string {
	var b strings.Builder
	b.WriteString(c.verb.String())
	switch c.verb {
	case verbSubmit:
		for _, t := range c.tasks {
			fmt.Fprintf(&b, " {%s key=%q priority=%d max=%d lease=%dms %s}", t.kind, t.key, t.priority, t.max, t.leaseMS, t.body)
		}
	case verbClaimNext:
		fmt.Fprintf(&b, " worker=%s types=%v limit=%d lease=%dms request=%q", c.worker, c.types, c.limit, c.leaseMS, c.request)
		if c.byCreated {
			b.WriteString(" by created_at")
		}
		if c.ascending {
			b.WriteString(" ascending")
		}
	case verbClaimTask:
		fmt.Fprintf(&b, " task %d worker=%s lease=%dms request=%q", c.id, c.worker, c.leaseMS, c.request)
	case verbComplete, verbFail, verbRelease:
		fmt.Fprintf(&b, " task %d worker=%s token=%d %s%s", c.id, c.worker, c.token, c.result, c.reason)
	case verbExtend:
		fmt.Fprintf(&b, " task %d worker=%s token=%d lease=%dms", c.id, c.worker, c.token, c.leaseMS)
	case verbRetry:
		fmt.Fprintf(&b, " task %d token=%d add=%d", c.id, c.token, c.add)
	case verbDelete:
		fmt.Fprintf(&b, " task %d", c.id)
	case verbExpire:
		for _, l := range c.items {
			fmt.Fprintf(&b, " {task %d token %d seq %d}", l.id, l.token, l.seq)
		}
	case verbSetNode:
		b.WriteString(" " + c.node)
	case verbSetLevel:
		fmt.Fprintf(&b, " %d", c.level)
	case verbTick, verbCheckpoint:
	}
	return b.String()
}
