package fsm

import (
	"fmt"
	"math"
)

// The records of a snapshot, as messages of fsm.proto. The state hash is made
// of the same bytes, so every saved field must be in one of them, and a field
// that is added raises FeatureLevel.

// recordKind says which message a record is. The numbers are in snapshots and
// in the state hash and never change; sections come in their order.
type recordKind uint8

const (
	recordHeader  recordKind = 1
	recordTask    recordKind = 2
	recordRequest recordKind = 3
	recordNode    recordKind = 4
	recordEnd     recordKind = 255 // not part of the state
)

// String returns the kind's name in messages.
func (k recordKind) String() string {
	switch k {
	case recordHeader:
		return "header"
	case recordTask:
		return "task"
	case recordRequest:
		return "claim request"
	case recordNode:
		return "node"
	case recordEnd:
		return "end"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// recordCounts is how many records of each kind there are.
type recordCounts struct{ tasks, requests, nodes uint64 }

func appendHeaderRecord(b []byte, h *header, n recordCounts) []byte {
	b = putUint(b, 1, h.Index)
	b = putInt(b, 2, h.Stamp.U)
	b = putInt(b, 3, h.Stamp.T)
	b = putUint(b, 4, uint64(h.Level))
	b = putID(b, 5, h.NextID)
	b = putID(b, 6, h.NextToken)
	b = putID(b, 7, h.NextRequest)
	b = putUint(b, 8, n.tasks)
	b = putUint(b, 9, n.requests)
	return putUint(b, 10, n.nodes)
}

func decodeHeaderRecord(r *fieldReader) (h header, n recordCounts) {
	for r.next() {
		switch r.num {
		case 1:
			h.Index = r.uint(math.MaxUint64)
		case 2:
			h.Stamp.U = r.int64()
		case 3:
			h.Stamp.T = r.int64()
		case 4:
			h.Level = r.uint32()
		case 5:
			h.NextID = r.id()
		case 6:
			h.NextToken = r.id()
		case 7:
			h.NextRequest = r.id()
		case 8:
			n.tasks = r.uint(math.MaxUint64)
		case 9:
			n.requests = r.uint(math.MaxUint64)
		case 10:
			n.nodes = r.uint(math.MaxUint64)
		default:
			r.unknown()
		}
	}
	return h, n
}

func appendTaskRecord(b []byte, t *Task) []byte {
	b = putID(b, 1, t.ID)
	b = putString(b, 2, t.Type)
	b = putBytes(b, 3, t.Params)
	b = putBytes(b, 4, t.Payload)
	b = putSint(b, 5, t.Priority)
	b = putSint(b, 6, t.MaxAttempts)
	b = putSint(b, 7, t.Attempts)
	b = putString(b, 8, t.Key)
	b = putInt(b, 9, t.LeaseMS)
	b = putUint(b, 10, uint64(t.Status))
	b = putString(b, 11, t.WorkerID)
	b = putID(b, 12, t.Token)
	b = putUint(b, 13, uint64(t.LeaseSeq))
	b = putInt(b, 14, t.ClaimLeaseMS)
	b = putInt(b, 15, t.LeaseEndU)
	b = putInt(b, 16, t.ClaimedAt)
	b = putInt(b, 17, t.CreatedAt)
	b = putInt(b, 18, t.UpdatedAt)
	b = putInt(b, 19, t.CompletedAt)
	b = putBytes(b, 20, t.Result)
	b = putBytes(b, 21, t.ResultPayload)
	b = putString(b, 22, t.Error)
	for i := range t.Log {
		var start int
		b, start = beginMessage(b, 23)
		b = endLength(appendAttempt(b, &t.Log[i]), start)
	}
	return b
}

func decodeTaskRecord(r *fieldReader, names *interner) *Task {
	t := &Task{}
	for r.next() {
		switch r.num {
		case 1:
			t.ID = r.id()
		case 2:
			t.Type = names.intern(r.single())
		case 3:
			t.Params = r.bytes()
		case 4:
			t.Payload = r.bytes()
		case 5:
			t.Priority = r.sint32()
		case 6:
			t.MaxAttempts = r.sint32()
		case 7:
			t.Attempts = r.sint32()
		case 8:
			t.Key = r.string()
		case 9:
			t.LeaseMS = r.int64()
		case 10:
			t.Status = Status(r.enum(uint64(StatusCancelled)))
		case 11:
			t.WorkerID = names.intern(r.single())
		case 12:
			t.Token = r.id()
		case 13:
			t.LeaseSeq = r.uint32()
		case 14:
			t.ClaimLeaseMS = r.int64()
		case 15:
			t.LeaseEndU = r.int64()
		default:
			decodeTaskRest(r, t, names)
		}
	}
	return t
}

// decodeTaskRest reads the field, one of those that take a tag of two bytes.
func decodeTaskRest(r *fieldReader, t *Task, names *interner) {
	switch r.num {
	case 16:
		t.ClaimedAt = r.int64()
	case 17:
		t.CreatedAt = r.int64()
	case 18:
		t.UpdatedAt = r.int64()
	case 19:
		t.CompletedAt = r.int64()
	case 20:
		t.Result = r.bytes()
	case 21:
		t.ResultPayload = r.bytes()
	case 22:
		t.Error = r.string()
	case 23:
		if t.Log == nil {
			t.Log = make([]Attempt, 0, r.run())
		}
		in := fieldReader{rest: r.raw()}
		t.Log = append(t.Log, decodeAttempt(&in, names))
		r.within(in.err)
	default:
		r.unknown()
	}
}

func appendAttempt(b []byte, a *Attempt) []byte {
	b = putString(b, 1, a.WorkerID)
	b = putID(b, 2, a.Token)
	b = putInt(b, 3, a.ClaimedAt)
	b = putInt(b, 4, a.EndedAt)
	b = putUint(b, 5, uint64(a.Outcome))
	return putString(b, 6, a.Error)
}

func decodeAttempt(r *fieldReader, names *interner) (a Attempt) {
	for r.next() {
		switch r.num {
		case 1:
			a.WorkerID = names.intern(r.single())
		case 2:
			a.Token = r.id()
		case 3:
			a.ClaimedAt = r.int64()
		case 4:
			a.EndedAt = r.int64()
		case 5:
			a.Outcome = Outcome(r.enum(uint64(OutcomeCancelled)))
		case 6:
			a.Error = r.string()
		default:
			r.unknown()
		}
	}
	return a
}

func appendRequestRecord(b []byte, seq uint64, q *request) []byte {
	b = putID(b, 1, seq)
	b = putString(b, 2, q.ID)
	b = putString(b, 3, q.WorkerID)
	b = putUint(b, 4, q.Choice)
	for _, c := range q.Claims {
		var start int
		b, start = beginMessage(b, 5)
		b = putID(b, 1, c.TaskID)
		b = endLength(putID(b, 2, c.Token), start)
	}
	b = putInt(b, 6, int64(q.Live))
	return putInt(b, 7, q.ForgetU)
}

func decodeRequestRecord(r *fieldReader, names *interner) (seq uint64, _ *request) {
	q := &request{}
	for r.next() {
		switch r.num {
		case 1:
			seq = r.id()
		case 2:
			q.ID = r.string()
		case 3:
			q.WorkerID = names.intern(r.single())
		case 4:
			q.Choice = r.uint(math.MaxUint64)
		case 5:
			if q.Claims == nil {
				q.Claims = make([]requestClaim, 0, r.run())
			}
			in := fieldReader{rest: r.raw()}
			q.Claims = append(q.Claims, decodeRequestClaim(&in))
			r.within(in.err)
		case 6:
			q.Live = r.int32()
		case 7:
			q.ForgetU = r.int64()
		default:
			r.unknown()
		}
	}
	return seq, q
}

func decodeRequestClaim(r *fieldReader) (c requestClaim) {
	for r.next() {
		switch r.num {
		case 1:
			c.TaskID = r.id()
		case 2:
			c.Token = r.id()
		default:
			r.unknown()
		}
	}
	return c
}

// appendEndRecord appends what a snapshot ends with.
func appendEndRecord(b []byte, n recordCounts, hash [16]byte) []byte {
	b = putUint(b, 1, n.tasks)
	b = putUint(b, 2, n.requests)
	b = putUint(b, 3, n.nodes)
	return putBytes(b, 4, hash[:])
}

func decodeEndRecord(r *fieldReader) (n recordCounts, hash [16]byte) {
	for r.next() {
		switch r.num {
		case 1:
			n.tasks = r.uint(math.MaxUint64)
		case 2:
			n.requests = r.uint(math.MaxUint64)
		case 3:
			n.nodes = r.uint(math.MaxUint64)
		case 4:
			if copy(hash[:], r.single()) != len(hash) {
				r.fail("it is no hash")
			}
		default:
			r.unknown()
		}
	}
	return n, hash
}

// internMax bounds how many different names an interner keeps.
const internMax = 10_000

// interner gives equal names one string, as type names and worker ids come
// again and again. Names past the bound get a string of their own.
type interner struct{ names map[string]string }

func (in *interner) intern(name []byte) string {
	if s, ok := in.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if in.names == nil {
		in.names = make(map[string]string)
	}
	if len(in.names) < internMax {
		in.names[s] = s
	}
	return s
}
