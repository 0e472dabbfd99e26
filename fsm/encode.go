package fsm

import "fmt"

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
		b = putBytes(b, 4, c.Result)
		return putBytes(b, 5, c.ResultPayload)
	case Fail:
		b = appendHold(b, c.Hold)
		return putString(b, 4, c.Error)
	case Extend:
		b = appendHold(b, c.Hold)
		return putInt(b, 4, c.LeaseMS)
	case Release:
		return appendHold(b, c.Hold)
	case Retry:
		b = putID(b, 1, c.ID)
		b = putID(b, 2, c.Token)
		return putInt(b, 3, int64(c.AddAttempts))
	case Delete:
		return putID(b, 1, c.ID)
	case Expire:
		return appendExpire(b, c)
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
	return putInt(b, 7, t.LeaseMS)
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
	return putString(b, 7, c.RequestID)
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
