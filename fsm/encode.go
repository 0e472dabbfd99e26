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
		return appendNewTasks(b, 1, c.Tasks)
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
		b = appendTypeSettings(b, 3, &c.Settings)
		return putString(b, 4, c.By)
	case Evict:
		return putInt(b, 1, c.Bytes)
	case Batch:
		return appendBatch(b, &c)
	case Act:
		return appendAct(b, &c)
	case ClaimFinalization:
		b = putID(b, 1, c.ID)
		b = putString(b, 2, c.ProcessorID)
		return putInt(b, 3, c.TimeoutMS)
	case ExtendFinalization:
		b = putID(b, 1, c.ID)
		b = putString(b, 2, c.ProcessorID)
		return putInt(b, 3, c.TimeoutMS)
	case ReleaseFinalization:
		b = putID(b, 1, c.ID)
		return putString(b, 2, c.ProcessorID)
	case Finalize:
		return appendFinalize(b, &c)
	case Tick, Checkpoint:
		return b
	case SetNode:
		mark := len(b)
		b, start := beginMessage(b, 1)
		return endOptional(appendNodeRecord(b, c.Node), mark, start)
	case RemoveNode:
		return putString(b, 1, c.UUID)
	case SetLevel:
		b = putUint(b, 1, uint64(c.Level))
		return putString(b, 2, c.By)
	case SetSchedule:
		b = appendScheduleField(b, 1, &c.Schedule)
		return putString(b, 2, c.By)
	case DeleteSchedule:
		b = putString(b, 1, c.Name)
		return putString(b, 2, c.By)
	case RunSchedules:
		return appendScheduleRuns(b, c.Items)
	case SetTrail:
		b = putInt(b, 1, c.Bytes)
		return putInt(b, 2, c.AgeMS)
	case Tell:
		if c.Kind <= eventLast { // another would make an entry that no node can read
			b = putUint(b, 1, uint64(c.Kind))
		}
		b = putString(b, 2, c.By)
		return putString(b, 3, c.What)
	case SetJoinToken:
		b = putBytes(b, 1, c.Hash)
		b = putInt(b, 2, c.LifeMS)
		b = putSint(b, 3, c.Uses)
		return putString(b, 4, c.By)
	case DeleteJoinToken:
		b = putString(b, 1, c.ID)
		return putString(b, 2, c.By)
	case UseJoinToken:
		b = putBytes(b, 1, c.Hash)
		b = putString(b, 2, c.UUID)
		return putString(b, 3, c.NodeID)
	}
	return appendRestore(b, c)
}

func appendRestore(b []byte, c Command) []byte {
	switch c := c.(type) {
	case RestoreBegin:
		return putUint(b, 1, c.Bytes)
	case RestoreChunk:
		b = putUint(b, 1, c.Begin)
		b = putUint(b, 2, c.Offset)
		return putBytes(b, 3, c.Data)
	case RestoreEnd:
		return putUint(b, 1, c.Begin)
	}
	panic(fmt.Sprintf("fsm: %T is no command", c))
}

// appendNewTasks appends the repeated field num.
func appendNewTasks(b []byte, num protowire.Number, tasks []NewTask) []byte {
	for i := range tasks {
		var start int
		b, start = beginMessage(b, num)
		b = endLength(appendNewTask(b, &tasks[i]), start)
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
	b = putBool(b, 15, t.UniqueActive)
	b = putString(b, 16, t.Traceparent)
	b = appendNewParent(b, 17, t.Parent)
	return putBool(b, 18, t.KeyOfType)
}

// appendBackoff appends the field num, a message; nothing if v is nil.
func appendBackoff(b []byte, num protowire.Number, v *Backoff) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, start := beginMessage(b, num)
	b = putInt(b, 1, v.InitialMS)
	b = putInt(b, 2, v.MaxMS)
	b = putInt(b, 3, v.Factor)
	return endOptional(putInt(b, 4, v.Jitter), mark, start)
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
	b = appendNewTasks(b, 6, c.Submit)
	if c.Claim == nil {
		return b
	}
	mark := len(b)
	b, start := beginMessage(b, 7)
	return endOptional(appendClaimNext(b, *c.Claim), mark, start)
}

// appendBatch writes an op as its kind and its body. It must be one that a
// batch may hold: another would make an entry that no node can read.
func appendBatch(b []byte, c *Batch) []byte {
	b = putBool(b, 1, c.Atomic)
	for _, op := range c.Ops {
		if !isOp(op) {
			panic(fmt.Sprintf("fsm: %T is no op of a batch", op))
		}
		var start int
		b, start = beginMessage(b, 2)
		b = append(b, byte(op.kind()))
		b = endLength(appendBody(b, op), start)
	}
	return b
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

// appendTypeSettings appends the field num, a message.
func appendTypeSettings(b []byte, num protowire.Number, s *TypeSettings) []byte {
	mark := len(b)
	b, start := beginMessage(b, num)
	b = putBool(b, 1, s.Paused)
	b = putInt(b, 2, int64(s.MaxClaimed))
	b = putInt(b, 3, s.RateLimit)
	b = putInt(b, 4, s.LeaseMS)
	b = putBool(b, 5, s.LimitSet)
	b = putInt(b, 6, int64(s.MaxAttempts))
	b = appendBackoff(b, 7, s.Backoff)
	return endOptional(putSint64(b, 8, s.RetentionMS), mark, start)
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
	b = putUint(b, 6, uint64(n.Level))
	return putBool(b, 7, n.Nonvoter)
}

func appendAct(b []byte, c *Act) []byte {
	b = putUint(b, 1, uint64(c.Action))
	for _, id := range c.IDs {
		b = putIDElement(b, 2, id)
	}
	mark := len(b)
	b, start := beginMessage(b, 3)
	b = endOptional(appendFilter(b, &c.Filter), mark, start)
	return putInt(b, 4, int64(c.AddAttempts))
}

func appendFilter(b []byte, f *Filter) []byte {
	b = putUint(b, 1, uint64(f.Status))
	b = putString(b, 2, f.Type)
	b = putString(b, 3, f.WorkerID)
	b = putString(b, 4, f.Key)
	b = putID(b, 5, f.ParentID)
	b = appendLabels(b, 6, f.Labels)
	b = putInt(b, 7, f.CreatedAfter)
	return putInt(b, 8, f.CreatedBefore)
}

// appendScheduleField appends the field num, a message.
func appendScheduleField(b []byte, num protowire.Number, s *Schedule) []byte {
	mark := len(b)
	b, outer := beginMessage(b, num)
	b = putString(b, 1, s.Name)
	inner := len(b)
	b, start := beginMessage(b, 2)
	b = endOptional(appendNewTask(b, &s.Task), inner, start)
	b = putString(b, 3, s.Cron)
	b = putString(b, 4, s.Timezone)
	b = putInt(b, 5, s.EveryMS)
	b = putBool(b, 6, s.OverlapAllow)
	b = putBool(b, 7, s.CatchUpSkip)
	b = putBool(b, 8, s.Paused)
	return endOptional(putInt(b, 9, s.NextRunAt), mark, outer)
}

func appendScheduleRuns(b []byte, items []ScheduleRun) []byte {
	for i := range items {
		var start int
		b, start = beginMessage(b, 1)
		b = putString(b, 1, items[i].Name)
		b = putUint(b, 2, items[i].Version)
		b = putInt(b, 3, items[i].Slot)
		b = putInt(b, 4, items[i].Next)
		b = endLength(putBool(b, 5, items[i].Skip), start)
	}
	return b
}
