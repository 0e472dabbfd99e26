package fsm

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/trail"
	"github.com/claimq/claimq/fsm/wire"
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

func appendHeaderRecord(b []byte, h *header, of *trail.Header, n recordCounts) []byte {
	b = wire.PutUint(b, 1, h.Index)
	b = wire.PutInt(b, 2, h.Stamp.U)
	b = wire.PutInt(b, 3, h.Stamp.T)
	b = wire.PutUint(b, 4, uint64(h.Level))
	b = wire.PutID(b, 5, h.NextID)
	b = wire.PutID(b, 6, h.NextToken)
	b = wire.PutID(b, 7, h.NextRequest)
	b = wire.PutUint(b, 8, n.tasks)
	b = wire.PutUint(b, 9, n.requests)
	b = wire.PutUint(b, 10, n.nodes)
	b = wire.PutUint(b, 11, n.types)
	b = wire.PutUint(b, 12, n.gone)
	b = wire.PutUint(b, 13, n.trail)
	b = wire.PutUint(b, 14, n.schedules)
	b = trail.AppendHeader(b, of)
	b = wire.PutUint(b, 22, h.Chain)
	b = wire.PutUint(b, 23, h.Ahead)
	b = appendJoinTokens(b, h.JoinTokens)
	b = wire.PutBytes(b, 25, h.PageSecret)
	return h.Defaults.append(b, 26)
}

func decodeHeaderRecord(r *fieldReader) (h header, of trail.Header, n recordCounts) {
	for r.Next() {
		switch r.Num {
		case 1:
			h.Index = r.Uint(math.MaxUint64)
		case 2:
			h.Stamp.U = r.Int64()
		case 3:
			h.Stamp.T = r.Int64()
		case 4:
			h.Level = r.Uint32()
		case 5:
			h.NextID = r.ID()
		case 6:
			h.NextToken = r.ID()
		case 7:
			h.NextRequest = r.ID()
		case 8:
			n.tasks = r.Uint(math.MaxUint64)
		case 9:
			n.requests = r.Uint(math.MaxUint64)
		case 10:
			n.nodes = r.Uint(math.MaxUint64)
		case 11:
			n.types = r.Uint(math.MaxUint64)
		case 12:
			n.gone = r.Uint(math.MaxUint64)
		case 13:
			n.trail = r.Uint(math.MaxUint64)
		case 14:
			n.schedules = r.Uint(math.MaxUint64)
		case 22:
			h.Chain = r.Uint(math.MaxUint64)
		case 23:
			h.Ahead = r.Uint(math.MaxUint64)
		case 24:
			h.JoinTokens = append(h.JoinTokens, r.joinToken())
		case 25:
			h.PageSecret = r.Bytes()
		case 26:
			h.Defaults = r.defaults()
		default:
			trail.DecodeHeader(&r.Reader, &of)
		}
	}
	return h, of, n
}

func appendTaskRecord(b []byte, t *Task) []byte {
	b = wire.PutID(b, 1, t.ID)
	b = wire.PutString(b, 2, t.Type)
	b = wire.PutBytes(b, 3, t.Params)
	b = wire.PutBytes(b, 4, t.Payload)
	b = wire.PutSint(b, 5, t.Priority)
	b = wire.PutSint(b, 6, t.MaxAttempts)
	b = wire.PutSint(b, 7, t.Attempts)
	b = wire.PutString(b, 8, t.Key)
	b = wire.PutInt(b, 9, t.LeaseMS)
	b = wire.PutUint(b, 10, uint64(t.Status))
	b = wire.PutString(b, 11, t.WorkerID)
	b = wire.PutID(b, 12, t.Token)
	b = wire.PutUint(b, 13, uint64(t.LeaseSeq))
	b = wire.PutInt(b, 14, t.ClaimLeaseMS)
	b = wire.PutInt(b, 15, t.LeaseEndU)
	b = wire.PutInt(b, 16, t.ClaimedAt)
	b = wire.PutInt(b, 17, t.CreatedAt)
	b = wire.PutInt(b, 18, t.UpdatedAt)
	b = wire.PutInt(b, 19, t.CompletedAt)
	b = wire.PutBytes(b, 20, t.Result)
	b = wire.PutBytes(b, 21, t.ResultPayload)
	b = wire.PutString(b, 22, t.Error)
	for i := range t.Log {
		var start int
		b, start = wire.BeginMessage(b, 23)
		b = wire.EndLength(appendAttempt(b, &t.Log[i]), start)
	}
	b = wire.PutInt(b, 24, t.RunAt)
	b = wire.PutInt(b, 25, t.RemoveAt)
	b = wire.PutBool(b, 26, t.CancelRequested)
	b = wire.PutBytes(b, 27, t.Progress)
	o := t.options()
	b = wire.PutInt(b, 28, o.ExpiresAt)
	b = appendBackoff(b, 29, o.Backoff)
	b = wire.PutSint64(b, 30, o.RetentionMS)
	b = appendLabels(b, 31, o.Labels)
	b = wire.PutString(b, 32, o.Group)
	b = wire.PutBool(b, 33, o.UniqueActive)
	b = appendThen(b, 34, t.Then)
	b = wire.PutString(b, 35, o.Traceparent)
	b = appendStepsRecord(b, o)
	return wire.PutBool(b, 39, o.KeyOfType)
}

// appendThen appends the field num, a message; nothing if v is nil.
func appendThen(b []byte, num protowire.Number, v *Then) []byte {
	if v == nil {
		return b
	}
	mark := len(b)
	b, outer := wire.BeginMessage(b, num)
	for _, f := range v.Submitted {
		var start int
		b, start = wire.BeginMessage(b, 1)
		b = wire.PutID(b, 1, f.ID)
		b = wire.EndLength(wire.PutBool(b, 2, f.Created), start)
	}
	for _, c := range v.Claims {
		b = appendClaimRef(b, 2, c)
	}
	return wire.EndOptional(b, mark, outer)
}

// appendClaimRef appends the field num, a message.
func appendClaimRef(b []byte, num protowire.Number, c ClaimRef) []byte {
	b, start := wire.BeginMessage(b, num)
	b = wire.PutID(b, 1, c.TaskID)
	return wire.EndLength(wire.PutID(b, 2, c.Token), start)
}

func decodeTaskRecord(r *fieldReader, names *interner) *Task {
	t := &Task{}
	for r.Next() {
		decodeTaskField(r, t, names)
	}
	return t
}

// decodeTaskField reads the field.
func decodeTaskField(r *fieldReader, t *Task, names *interner) {
	switch r.Num {
	case 1:
		t.ID = r.ID()
	case 2:
		t.Type = names.intern(r.Single())
	case 3:
		t.Params = r.Bytes()
	case 4:
		t.Payload = r.Bytes()
	case 5:
		t.Priority = r.Sint32()
	case 6:
		t.MaxAttempts = r.Sint32()
	case 7:
		t.Attempts = r.Sint32()
	case 8:
		t.Key = r.Text()
	case 9:
		t.LeaseMS = r.Int64()
	case 10:
		t.Status = Status(r.Enum(uint64(StatusCancelled)))
	case 11:
		t.WorkerID = names.intern(r.Single())
	case 12:
		t.Token = r.ID()
	case 13:
		t.LeaseSeq = r.Uint32()
	case 14:
		t.ClaimLeaseMS = r.Int64()
	case 15:
		t.LeaseEndU = r.Int64()
	default:
		decodeTaskRest(r, t, names)
	}
}

// decodeTaskRest reads the field, one of those that take a tag of two bytes.
func decodeTaskRest(r *fieldReader, t *Task, names *interner) {
	switch r.Num {
	case 16:
		t.ClaimedAt = r.Int64()
	case 17:
		t.CreatedAt = r.Int64()
	case 18:
		t.UpdatedAt = r.Int64()
	case 19:
		t.CompletedAt = r.Int64()
	case 20:
		t.Result = r.Bytes()
	case 21:
		t.ResultPayload = r.Bytes()
	case 22:
		t.Error = r.Text()
	case 23:
		if t.Log == nil {
			t.Log = make([]Attempt, 0, r.Run())
		}
		in := fieldsOf(r.Raw())
		a := decodeAttempt(&in, names)
		if a.Error == t.Error {
			a.Error = t.Error // one string for both
		}
		t.Log = append(t.Log, a)
		r.Within(in.Err)
	case 24:
		t.RunAt = r.Int64()
	case 25:
		t.RemoveAt = r.Int64()
	case 26:
		t.CancelRequested = r.Bool()
	case 27:
		t.Progress = r.Bytes()
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
	switch r.Num {
	case 28:
		o.ExpiresAt = r.Int64()
	case 29:
		o.Backoff = r.backoff()
	case 30:
		o.RetentionMS = r.Sint64()
	case 31:
		o.Labels = r.label(o.Labels)
	case 32:
		o.Group = names.intern(r.Single())
	case 33:
		o.UniqueActive = r.Bool()
	case 35:
		o.Traceparent = r.Text()
	case 39:
		o.KeyOfType = r.Bool()
	default:
		decodeStepsRecord(r, o, names)
	}
}

// then reads the field, a message Then.
func (r *fieldReader) then() *Then {
	in := fieldsOf(r.Single())
	v := &Then{}
	for in.Next() {
		switch in.Num {
		case 1:
			if v.Submitted == nil {
				v.Submitted = make([]FollowUp, 0, in.Run())
			}
			one := fieldsOf(in.Raw())
			v.Submitted = append(v.Submitted, decodeFollowUp(&one))
			in.Within(one.Err)
		case 2:
			if v.Claims == nil {
				v.Claims = make([]ClaimRef, 0, in.Run())
			}
			one := fieldsOf(in.Raw())
			v.Claims = append(v.Claims, decodeClaimRef(&one))
			in.Within(one.Err)
		default:
			in.Unknown()
		}
	}
	r.Within(in.Err)
	return v
}

func decodeFollowUp(r *fieldReader) (f FollowUp) {
	for r.Next() {
		switch r.Num {
		case 1:
			f.ID = r.ID()
		case 2:
			f.Created = r.Bool()
		default:
			r.Unknown()
		}
	}
	return f
}

func appendAttempt(b []byte, a *Attempt) []byte {
	b = wire.PutString(b, 1, a.WorkerID)
	b = wire.PutID(b, 2, a.Token)
	b = wire.PutInt(b, 3, a.ClaimedAt)
	b = wire.PutInt(b, 4, a.EndedAt)
	b = wire.PutUint(b, 5, uint64(a.Outcome))
	return wire.PutString(b, 6, a.Error)
}

func decodeAttempt(r *fieldReader, names *interner) (a Attempt) {
	for r.Next() {
		switch r.Num {
		case 1:
			a.WorkerID = names.intern(r.Single())
		case 2:
			a.Token = r.ID()
		case 3:
			a.ClaimedAt = r.Int64()
		case 4:
			a.EndedAt = r.Int64()
		case 5:
			a.Outcome = Outcome(r.Enum(uint64(OutcomeCancelled)))
		case 6:
			a.Error = r.Text()
		default:
			r.Unknown()
		}
	}
	return a
}

func appendRequestRecord(b []byte, seq uint64, q *request) []byte {
	b = wire.PutID(b, 1, seq)
	b = wire.PutString(b, 2, q.ID)
	b = wire.PutString(b, 3, q.WorkerID)
	b = wire.PutUint(b, 4, q.Choice)
	for _, c := range q.Claims {
		b = appendClaimRef(b, 5, c)
	}
	b = wire.PutInt(b, 6, int64(q.Live))
	return wire.PutInt(b, 7, q.ForgetU)
}

func decodeRequestRecord(r *fieldReader, names *interner) (seq uint64, _ *request) {
	q := &request{}
	for r.Next() {
		switch r.Num {
		case 1:
			seq = r.ID()
		case 2:
			q.ID = r.Text()
		case 3:
			q.WorkerID = names.intern(r.Single())
		case 4:
			q.Choice = r.Uint(math.MaxUint64)
		case 5:
			if q.Claims == nil {
				q.Claims = make([]ClaimRef, 0, r.Run())
			}
			in := fieldsOf(r.Raw())
			q.Claims = append(q.Claims, decodeClaimRef(&in))
			r.Within(in.Err)
		case 6:
			q.Live = r.Int32()
		case 7:
			q.ForgetU = r.Int64()
		default:
			r.Unknown()
		}
	}
	return seq, q
}

func decodeClaimRef(r *fieldReader) (c ClaimRef) {
	for r.Next() {
		switch r.Num {
		case 1:
			c.TaskID = r.ID()
		case 2:
			c.Token = r.ID()
		default:
			r.Unknown()
		}
	}
	return c
}

func appendTypeRecord(b []byte, t *typeRecord) []byte {
	b = wire.PutString(b, 1, t.Name)
	b = appendTypeSettings(b, 2, &t.Settings)
	b = wire.PutInt(b, 3, t.Bucket)
	return wire.PutInt(b, 4, t.BucketT)
}

func decodeTypeRecord(r *fieldReader, names *interner) *typeRecord {
	t := &typeRecord{}
	for r.Next() {
		switch r.Num {
		case 1:
			t.Name = names.intern(r.Single())
		case 2:
			in := fieldsOf(r.Single())
			t.Settings = decodeTypeSettings(&in)
			r.Within(in.Err)
		case 3:
			t.Bucket = r.Int64()
		case 4:
			t.BucketT = r.Int64()
		default:
			r.Unknown()
		}
	}
	return t
}

func appendGoneRecord(b []byte, id uint64, g *gone) []byte {
	b = wire.PutID(b, 1, id)
	b = wire.PutString(b, 2, g.Key)
	b = wire.PutUint(b, 3, uint64(g.Status))
	b = wire.PutString(b, 4, g.WorkerID)
	b = wire.PutID(b, 5, g.Token)
	b = wire.PutUint(b, 6, uint64(g.Outcome))
	b = wire.PutUint(b, 7, g.Same)
	b = wire.PutInt(b, 8, g.ForgetU)
	b = appendThen(b, 9, g.Then)
	b = wire.PutString(b, 10, g.Type)
	return wire.PutBool(b, 11, g.KeyOfType)
}

func decodeGoneRecord(r *fieldReader, names *interner) (id uint64, _ *gone) {
	g := &gone{}
	for r.Next() {
		switch r.Num {
		case 1:
			id = r.ID()
		case 2:
			g.Key = r.Text()
		case 3:
			g.Status = Status(r.Enum(uint64(StatusCancelled)))
		case 4:
			g.WorkerID = names.intern(r.Single())
		case 5:
			g.Token = r.ID()
		case 6:
			g.Outcome = Outcome(r.Enum(uint64(OutcomeCancelled)))
		case 7:
			g.Same = r.Uint(math.MaxUint64)
		case 8:
			g.ForgetU = r.Int64()
		case 9:
			g.Then = r.then()
		case 10:
			g.Type = names.intern(r.Single())
		case 11:
			g.KeyOfType = r.Bool()
		default:
			r.Unknown()
		}
	}
	return id, g
}

// appendEndRecord appends what a snapshot ends with.
func appendEndRecord(b []byte, n recordCounts, hash [16]byte) []byte {
	b = wire.PutUint(b, 1, n.tasks)
	b = wire.PutUint(b, 2, n.requests)
	b = wire.PutUint(b, 3, n.nodes)
	b = wire.PutBytes(b, 4, hash[:])
	b = wire.PutUint(b, 5, n.types)
	b = wire.PutUint(b, 6, n.gone)
	b = wire.PutUint(b, 7, n.trail)
	return wire.PutUint(b, 8, n.schedules)
}

func decodeEndRecord(r *fieldReader) (n recordCounts, hash [16]byte) {
	for r.Next() {
		switch r.Num {
		case 1:
			n.tasks = r.Uint(math.MaxUint64)
		case 2:
			n.requests = r.Uint(math.MaxUint64)
		case 3:
			n.nodes = r.Uint(math.MaxUint64)
		case 4:
			if copy(hash[:], r.Single()) != len(hash) {
				r.Fail("it is no hash")
			}
		case 5:
			n.types = r.Uint(math.MaxUint64)
		case 6:
			n.gone = r.Uint(math.MaxUint64)
		case 7:
			n.trail = r.Uint(math.MaxUint64)
		case 8:
			n.schedules = r.Uint(math.MaxUint64)
		default:
			r.Unknown()
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
