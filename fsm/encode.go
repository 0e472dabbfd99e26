package fsm

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendBody appends the body of the command: the message of fsm.proto that
// has its name.
func appendBody(b []byte, c Command) []byte {
	switch c := c.(type) {
	case Submit:
		return appendSubmit(b, c)
	case ClaimNext:
		return appendClaimNext(b, c)
	case ClaimTask:
		return appendClaimTask(b, c)
	case Complete:
		b = appendHold(b, c.Hold)
		return appendCompleteRest(b, &c)
	case Fail:
		b = appendHold(b, c.Hold)
		b = putString(b, 4, c.Error)
		b = putBool(b, 5, c.RetryIn)
		b = putInt(b, 6, c.RetryInMS)
		return putBool(b, 7, c.Permanent)
	case Extend:
		b = appendHold(b, c.Hold)
		b = putInt(b, 4, c.LeaseMS)
		return putBytes(b, 5, c.Progress)
	case Release:
		b = appendHold(b, c.Hold)
		return putInt(b, 4, c.DelayMS)
	case Retry:
		b = putID(b, 1, c.ID)
		b = putID(b, 2, c.Token)
		return putInt(b, 3, int64(c.AddAttempts))
	case Delete:
		return putID(b, 1, c.ID)
	case Expire:
		return appendExpire(b, c)
	case Cancel:
		return putID(b, 1, c.ID)
	case Patch:
		return appendPatch(b, &c)
	case SetType:
		b = putString(b, 1, c.Type)
		b = putUint(b, 2, uint64(c.Set))
		if c.Settings == (TypeSettings{}) {
			return b
		}
		b, start := beginMessage(b, 3)
		return endLength(appendTypeSettings(b, &c.Settings), start)
	case Evict:
		return putInt(b, 1, c.Bytes)
	case Batch:
		b = putBool(b, 1, c.Atomic)
		for _, op := range c.Ops {
			var start int
			b, start = beginMessage(b, 2)
			b = append(b, byte(op.kind()))
			b = endLength(appendBody(b, op), start)
		}
		return b
	case Tick, Checkpoint:
		return b
	case SetNode:
		if c.Node == (NodeRecord{}) {
			return b
		}
		b, start := beginMessage(b, 1)
		return endLength(appendNodeRecord(b, c.Node), start)
	case RemoveNode:
		return putString(b, 1, c.UUID)
	case SetLevel:
		return putUint(b, 1, uint64(c.Level))
	}
	panic(fmt.Sprintf("fsm: %T is no command", c))
}

func appendSubmit(b []byte, c Submit) []byte {
	for i := range c.Tasks {
		var start int
		b, start = beginMessage(b, 1)
		b = endLength(appendNewTask(b, &c.Tasks[i]), start)
	}
	return b
}

func appendNewTask(b []byte, t *NewTask) []byte {
	b = putString(b, 1, t.Type)
	b = putBytes(b, 2, t.Params)
	b = putBytes(b, 3, t.Payload)
	b = putSint(b, 4, t.Priority)
	b = putSint(b, 5, t.MaxAttempts)
	b = putString(b, 6, t.Key)
	b = putInt(b, 7, t.LeaseMS)
	b = putInt(b, 8, t.RunAt)
	b = putInt(b, 9, t.DelayMS)
	b = putInt(b, 10, t.ExpiresAt)
	b = appendBackoff(b, 11, t.Backoff)
	b = putSint64(b, 12, t.RetentionMS)
	b = appendLabels(b, 13, t.Labels)
	b = putString(b, 14, t.Group)
	return putBool(b, 15, t.UniqueActive)
}

// appendBackoff appends the field num, a message; nothing if it is nil.
func appendBackoff(b []byte, num protowire.Number, v *Backoff) []byte {
	if v == nil {
		return b
	}
	b, start := beginMessage(b, num)
	b = putInt(b, 1, v.InitialMS)
	b = putInt(b, 2, v.MaxMS)
	b = putInt(b, 3, v.Factor)
	return endLength(putInt(b, 4, v.Jitter), start)
}

// appendLabels appends the repeated field num.
func appendLabels(b []byte, num protowire.Number, labels []Label) []byte {
	for _, l := range labels {
		var start int
		b, start = beginMessage(b, num)
		b = putString(b, 1, l.Name)
		b = endLength(putString(b, 2, l.Value), start)
	}
	return b
}

func appendCompleteRest(b []byte, c *Complete) []byte {
	b = putBytes(b, 4, c.Result)
	b = putBytes(b, 5, c.ResultPayload)
	for i := range c.Submit {
		var start int
		b, start = beginMessage(b, 6)
		b = endLength(appendNewTask(b, &c.Submit[i]), start)
	}
	if c.Claim == nil {
		return b
	}
	b, start := beginMessage(b, 7)
	return endLength(appendClaimNext(b, *c.Claim), start)
}

func appendPatch(b []byte, c *Patch) []byte {
	b = putID(b, 1, c.ID)
	b = putBool(b, 2, c.SetPriority)
	b = putSint(b, 3, c.Priority)
	b = putBool(b, 4, c.SetRunAt)
	b = putInt(b, 5, c.RunAt)
	b = putBool(b, 6, c.SetLabels)
	return appendLabels(b, 7, c.Labels)
}

func appendTypeSettings(b []byte, s *TypeSettings) []byte {
	b = putBool(b, 1, s.Paused)
	b = putInt(b, 2, int64(s.MaxClaimed))
	b = putInt(b, 3, s.RateLimit)
	b = putInt(b, 4, s.LeaseMS)
	b = putBool(b, 5, s.LimitSet)
	b = putInt(b, 6, int64(s.MaxAttempts))
	b = appendBackoff(b, 7, s.Backoff)
	return putSint64(b, 8, s.RetentionMS)
}

func appendClaimNext(b []byte, c ClaimNext) []byte {
	b = putString(b, 1, c.WorkerID)
	for _, t := range c.Types {
		b = putElement(b, 2, t)
	}
	b = putUint(b, 3, uint64(c.SortBy))
	b = putBool(b, 4, c.Ascending)
	b = putInt(b, 5, int64(c.Limit))
	b = putInt(b, 6, c.LeaseMS)
	b = putString(b, 7, c.RequestID)
	return putInt(b, 8, int64(c.MoreAttempts))
}

func appendClaimTask(b []byte, c ClaimTask) []byte {
	b = putID(b, 1, c.ID)
	b = putString(b, 2, c.WorkerID)
	b = putInt(b, 3, c.LeaseMS)
	return putString(b, 4, c.RequestID)
}

// appendHold appends what the commands of a claim's worker begin with.
func appendHold(b []byte, h Hold) []byte {
	b = putID(b, 1, h.ID)
	b = putString(b, 2, h.WorkerID)
	return putID(b, 3, h.Token)
}

func appendExpire(b []byte, c Expire) []byte {
	for _, l := range c.Items {
		var start int
		b, start = beginMessage(b, 1)
		b = putID(b, 1, l.TaskID)
		b = putID(b, 2, l.Token)
		b = endLength(putUint(b, 3, uint64(l.Seq)), start)
	}
	return b
}

func appendNodeRecord(b []byte, n NodeRecord) []byte {
	b = putString(b, 1, n.UUID)
	b = putString(b, 2, n.NodeID)
	b = putString(b, 3, n.PeerAddr)
	b = putString(b, 4, n.HTTPAddr)
	b = putString(b, 5, n.Version)
	return putUint(b, 6, uint64(n.Level))
}
