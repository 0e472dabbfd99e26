package fsm

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The records of a snapshot, as messages of fsm.proto. The state hash is made
// of the same bytes, so every saved field must be in one of them, and a field
// that is added raises FeatureLevel.

// recordKind says which message a record is. The numbers are in snapshots and
// in the state hash and never change; sections come in their order.
type recordKind uint8

const (
	recordHeader   recordKind = 1
	recordTask     recordKind = 2
	recordRequest  recordKind = 3
	recordNode     recordKind = 4
	recordType     recordKind = 5
	recordGone     recordKind = 6
	recordTrail    recordKind = 7
	recordSchedule recordKind = 8
	recordEnd      recordKind = 255 // not part of the state
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
	case recordType:
		return "task type"
	case recordGone:
		return "removed task"
	case recordTrail:
		return "part of the trail"
	case recordSchedule:
		return "schedule"
	case recordEnd:
		return "end"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// recordCounts is how many records of each kind there are.
type recordCounts struct{ tasks, requests, nodes, types, gone, trail, schedules uint64 }

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
	b = putUint(b, 10, n.nodes)
	b = putUint(b, 11, n.types)
	b = putUint(b, 12, n.gone)
	b = putUint(b, 13, n.trail)
	b = putUint(b, 14, n.schedules)
	b = appendTrailHeader(b, &h.Trail)
	b = putUint(b, 22, h.Chain)
	b = putUint(b, 23, h.Ahead)
	return appendJoinTokens(b, h.JoinTokens)
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
		case 11:
			n.types = r.uint(math.MaxUint64)
		case 12:
			n.gone = r.uint(math.MaxUint64)
		case 13:
			n.trail = r.uint(math.MaxUint64)
		case 14:
			n.schedules = r.uint(math.MaxUint64)
		case 22:
			h.Chain = r.uint(math.MaxUint64)
		case 23:
			h.Ahead = r.uint(math.MaxUint64)
		case 24:
			h.JoinTokens = append(h.JoinTokens, r.joinToken())
		default:
			decodeTrailHeader(r, &h.Trail)
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
	b = putInt(b, 24, t.RunAt)
	b = putInt(b, 25, t.RemoveAt)
	b = putBool(b, 26, t.CancelRequested)
	b = putBytes(b, 27, t.Progress)
	o := t.options()
	b = putInt(b, 28, o.ExpiresAt)
	b = appendBackoff(b, 29, o.Backoff)
	b = putSint64(b, 30, o.RetentionMS)
	b = appendLabels(b, 31, o.Labels)
	b = putString(b, 32, o.Group)
	b = putBool(b, 33, o.UniqueActive)
	b = appendThen(b, 34, t.Then)
	b = putString(b, 35, o.Traceparent)
	b = appendStepsRecord(b, o)
	return putBool(b, 39, o.KeyOfType)
}

// appendThen appends the field num, a message; nothing if v is nil.
func appendThen(b []byte, num protowire.Number, v *Then) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := beginMessage(b, num)
	for _, f := range v.Submitted {
		var start int
		b, start = beginMessage(b, 1)
		b = putID(b, 1, f.ID)
		b = endLength(putBool(b, 2, f.Created), start)
	}
	for _, c := range v.Claims {
		b = appendClaimRef(b, 2, c)
	}
	return endOptional(b, mark, outer)
}

// appendClaimRef appends the field num, a message.
func appendClaimRef(b []byte, num protowire.Number, c ClaimRef) []byte {
	b, start := beginMessage(b, num)
	b = putID(b, 1, c.TaskID)
	return endLength(putID(b, 2, c.Token), start)
}

func decodeTaskRecord(r *fieldReader, names *interner) *Task {
	t := &Task{}
	for r.next() {
		decodeTaskField(r, t, names)
	}
	return t
}

// decodeTaskField reads the field.
func decodeTaskField(r *fieldReader, t *Task, names *interner) {
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
		a := decodeAttempt(&in, names)
		if a.Error == t.Error {
			a.Error = t.Error // one string for both
		}
		t.Log = append(t.Log, a)
		r.within(in.err)
	case 24:
		t.RunAt = r.int64()
	case 25:
		t.RemoveAt = r.int64()
	case 26:
		t.CancelRequested = r.bool()
	case 27:
		t.Progress = r.bytes()
	case 34:
		t.Then = r.then()
	default:
		if t.Options == nil {
			t.Options = &Options{}
		}
		decodeOptions(r, t.Options, names)
	}
}

// decodeOptions reads the field, one of Options.
func decodeOptions(r *fieldReader, o *Options, names *interner) {
	switch r.num {
	case 28:
		o.ExpiresAt = r.int64()
	case 29:
		o.Backoff = r.backoff()
	case 30:
		o.RetentionMS = r.sint64()
	case 31:
		o.Labels = r.label(o.Labels)
	case 32:
		o.Group = names.intern(r.single())
	case 33:
		o.UniqueActive = r.bool()
	case 35:
		o.Traceparent = r.string()
	case 39:
		o.KeyOfType = r.bool()
	default:
		decodeStepsRecord(r, o, names)
	}
}

// then reads the field, a message Then.
func (r *fieldReader) then() *Then {
	in := fieldReader{rest: r.single()}
	v := &Then{}
	for in.next() {
		switch in.num {
		case 1:
			if v.Submitted == nil {
				v.Submitted = make([]FollowUp, 0, in.run())
			}
			one := fieldReader{rest: in.raw()}
			v.Submitted = append(v.Submitted, decodeFollowUp(&one))
			in.within(one.err)
		case 2:
			if v.Claims == nil {
				v.Claims = make([]ClaimRef, 0, in.run())
			}
			one := fieldReader{rest: in.raw()}
			v.Claims = append(v.Claims, decodeClaimRef(&one))
			in.within(one.err)
		default:
			in.unknown()
		}
	}
	r.within(in.err)
	return v
}

func decodeFollowUp(r *fieldReader) (f FollowUp) {
	for r.next() {
		switch r.num {
		case 1:
			f.ID = r.id()
		case 2:
			f.Created = r.bool()
		default:
			r.unknown()
		}
	}
	return f
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
		b = appendClaimRef(b, 5, c)
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
				q.Claims = make([]ClaimRef, 0, r.run())
			}
			in := fieldReader{rest: r.raw()}
			q.Claims = append(q.Claims, decodeClaimRef(&in))
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

func decodeClaimRef(r *fieldReader) (c ClaimRef) {
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

func appendTypeRecord(b []byte, t *typeRecord) []byte {
	b = putString(b, 1, t.Name)
	b = appendTypeSettings(b, 2, &t.Settings)
	b = putInt(b, 3, t.Bucket)
	return putInt(b, 4, t.BucketT)
}

func decodeTypeRecord(r *fieldReader, names *interner) *typeRecord {
	t := &typeRecord{}
	for r.next() {
		switch r.num {
		case 1:
			t.Name = names.intern(r.single())
		case 2:
			in := fieldReader{rest: r.single()}
			t.Settings = decodeTypeSettings(&in)
			r.within(in.err)
		case 3:
			t.Bucket = r.int64()
		case 4:
			t.BucketT = r.int64()
		default:
			r.unknown()
		}
	}
	return t
}

func appendGoneRecord(b []byte, id uint64, g *gone) []byte {
	b = putID(b, 1, id)
	b = putString(b, 2, g.Key)
	b = putUint(b, 3, uint64(g.Status))
	b = putString(b, 4, g.WorkerID)
	b = putID(b, 5, g.Token)
	b = putUint(b, 6, uint64(g.Outcome))
	b = putUint(b, 7, g.Same)
	b = putInt(b, 8, g.ForgetU)
	b = appendThen(b, 9, g.Then)
	b = putString(b, 10, g.Type)
	return putBool(b, 11, g.KeyOfType)
}

func decodeGoneRecord(r *fieldReader, names *interner) (id uint64, _ *gone) {
	g := &gone{}
	for r.next() {
		switch r.num {
		case 1:
			id = r.id()
		case 2:
			g.Key = r.string()
		case 3:
			g.Status = Status(r.enum(uint64(StatusCancelled)))
		case 4:
			g.WorkerID = names.intern(r.single())
		case 5:
			g.Token = r.id()
		case 6:
			g.Outcome = Outcome(r.enum(uint64(OutcomeCancelled)))
		case 7:
			g.Same = r.uint(math.MaxUint64)
		case 8:
			g.ForgetU = r.int64()
		case 9:
			g.Then = r.then()
		case 10:
			g.Type = names.intern(r.single())
		case 11:
			g.KeyOfType = r.bool()
		default:
			r.unknown()
		}
	}
	return id, g
}

// appendEndRecord appends what a snapshot ends with.
func appendEndRecord(b []byte, n recordCounts, hash [16]byte) []byte {
	b = putUint(b, 1, n.tasks)
	b = putUint(b, 2, n.requests)
	b = putUint(b, 3, n.nodes)
	b = putBytes(b, 4, hash[:])
	b = putUint(b, 5, n.types)
	b = putUint(b, 6, n.gone)
	b = putUint(b, 7, n.trail)
	return putUint(b, 8, n.schedules)
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
		case 5:
			n.types = r.uint(math.MaxUint64)
		case 6:
			n.gone = r.uint(math.MaxUint64)
		case 7:
			n.trail = r.uint(math.MaxUint64)
		case 8:
			n.schedules = r.uint(math.MaxUint64)
		default:
			r.unknown()
		}
	}
	return n, hash
}

// internMax bounds how many different names an interner keeps.
const internMax = 10_000

// interner gives equal names one string, as type names and worker ids come
// again and again. Names past the bound get a string of their own, and so do all
// with a nil interner.
type interner struct{ names map[string]string }

func (in *interner) intern(name []byte) string {
	if in == nil {
		return string(name)
	}
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
