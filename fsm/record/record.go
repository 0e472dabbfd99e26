package record

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

// Kind says which message a record is. The numbers are in snapshots and
// in the state hash and never change; sections come in their order.
type Kind uint8

// The kinds.
const (
	KindHeader   Kind = 1
	KindTask     Kind = 2
	KindRequest  Kind = 3
	KindNode     Kind = 4
	KindType     Kind = 5
	KindGone     Kind = 6
	KindTrail    Kind = 7
	KindSchedule Kind = 8
	KindEnd      Kind = 255 // not part of the state
)

// String returns the kind's name in messages.
func (k Kind) String() string {
	switch k {
	case KindHeader:
		return "header"
	case KindTask:
		return "task"
	case KindRequest:
		return "claim request"
	case KindNode:
		return "node"
	case KindType:
		return "task type"
	case KindGone:
		return "removed task"
	case KindTrail:
		return "part of the trail"
	case KindSchedule:
		return "schedule"
	case KindEnd:
		return "end"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Counts is how many records of each kind there are.
type Counts struct{ Tasks, Requests, Nodes, Types, Gone, Trail, Schedules uint64 }

// AppendHeader appends the record of the header, with what the trail and the counts add to it.
func AppendHeader(b []byte, h *Header, of *trail.Header, n Counts) []byte {
	b = wire.PutUint(b, 1, h.Index)
	b = wire.PutInt(b, 2, h.Stamp.U)
	b = wire.PutInt(b, 3, h.Stamp.T)
	b = wire.PutUint(b, 4, uint64(h.Level))
	b = wire.PutID(b, 5, h.NextID)
	b = wire.PutID(b, 6, h.NextToken)
	b = wire.PutID(b, 7, h.NextRequest)
	b = wire.PutUint(b, 8, n.Tasks)
	b = wire.PutUint(b, 9, n.Requests)
	b = wire.PutUint(b, 10, n.Nodes)
	b = wire.PutUint(b, 11, n.Types)
	b = wire.PutUint(b, 12, n.Gone)
	b = wire.PutUint(b, 13, n.Trail)
	b = wire.PutUint(b, 14, n.Schedules)
	b = trail.AppendHeader(b, of)
	b = wire.PutUint(b, 22, h.Chain)
	b = wire.PutUint(b, 23, h.Ahead)
	b = appendJoinTokens(b, h.JoinTokens)
	b = wire.PutBytes(b, 25, h.PageSecret)
	return h.Defaults.Append(b, 26)
}

// DecodeHeader reads what AppendHeader writes.
func DecodeHeader(r *Reader) (h Header, of trail.Header, n Counts) {
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
			n.Tasks = r.Uint(math.MaxUint64)
		case 9:
			n.Requests = r.Uint(math.MaxUint64)
		case 10:
			n.Nodes = r.Uint(math.MaxUint64)
		case 11:
			n.Types = r.Uint(math.MaxUint64)
		case 12:
			n.Gone = r.Uint(math.MaxUint64)
		case 13:
			n.Trail = r.Uint(math.MaxUint64)
		case 14:
			n.Schedules = r.Uint(math.MaxUint64)
		case 22:
			h.Chain = r.Uint(math.MaxUint64)
		case 23:
			h.Ahead = r.Uint(math.MaxUint64)
		case 24:
			h.JoinTokens = append(h.JoinTokens, r.joinToken())
		case 25:
			h.PageSecret = r.Bytes()
		case 26:
			h.Defaults = r.Defaults()
		default:
			trail.DecodeHeader(&r.Reader, &of)
		}
	}
	return h, of, n
}

// AppendTask appends the record of the task.
func AppendTask(b []byte, t *Task) []byte {
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
	o := t.Opts()
	b = wire.PutInt(b, 28, o.ExpiresAt)
	b = appendBackoff(b, 29, o.Backoff)
	b = wire.PutSint64(b, 30, o.RetentionMS)
	b = AppendLabels(b, 31, o.Labels)
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

// DecodeTask reads the record of a task.
func DecodeTask(r *Reader, names *Names) *Task {
	t := &Task{}
	for r.Next() {
		DecodeTaskField(r, t, names)
	}
	return t
}

// DecodeTaskField reads the field.
func DecodeTaskField(r *Reader, t *Task, names *Names) {
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
func decodeTaskRest(r *Reader, t *Task, names *Names) {
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
		in := ReaderOf(r.Raw())
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
func decodeOptions(r *Reader, o *Options, names *Names) {
	switch r.Num {
	case 28:
		o.ExpiresAt = r.Int64()
	case 29:
		o.Backoff = r.backoff()
	case 30:
		o.RetentionMS = r.Sint64()
	case 31:
		o.Labels = r.AddLabel(o.Labels)
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
func (r *Reader) then() *Then {
	in := ReaderOf(r.Single())
	v := &Then{}
	for in.Next() {
		switch in.Num {
		case 1:
			if v.Submitted == nil {
				v.Submitted = make([]FollowUp, 0, in.Run())
			}
			one := ReaderOf(in.Raw())
			v.Submitted = append(v.Submitted, decodeFollowUp(&one))
			in.Within(one.Err)
		case 2:
			if v.Claims == nil {
				v.Claims = make([]ClaimRef, 0, in.Run())
			}
			one := ReaderOf(in.Raw())
			v.Claims = append(v.Claims, decodeClaimRef(&one))
			in.Within(one.Err)
		default:
			in.Unknown()
		}
	}
	r.Within(in.Err)
	return v
}

func decodeFollowUp(r *Reader) (f FollowUp) {
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

func decodeAttempt(r *Reader, names *Names) (a Attempt) {
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

// AppendRequest appends the record of the claim request with that sequence number.
func AppendRequest(b []byte, seq uint64, q *Request) []byte {
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

// DecodeRequest reads the record.
func DecodeRequest(r *Reader, names *Names) (seq uint64, _ *Request) {
	q := &Request{}
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
			in := ReaderOf(r.Raw())
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

func decodeClaimRef(r *Reader) (c ClaimRef) {
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

// AppendType appends the record of the task type.
func AppendType(b []byte, t *TaskType) []byte {
	b = wire.PutString(b, 1, t.Name)
	b = AppendTypeSettings(b, 2, &t.Settings)
	b = wire.PutInt(b, 3, t.Bucket)
	return wire.PutInt(b, 4, t.BucketT)
}

// DecodeType reads the record.
func DecodeType(r *Reader, names *Names) *TaskType {
	t := &TaskType{}
	for r.Next() {
		switch r.Num {
		case 1:
			t.Name = names.intern(r.Single())
		case 2:
			in := ReaderOf(r.Single())
			t.Settings = DecodeTypeSettings(&in)
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

// AppendGone appends the record of the removed task with that id.
func AppendGone(b []byte, id uint64, g *Gone) []byte {
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

// DecodeGone reads the record.
func DecodeGone(r *Reader, names *Names) (id uint64, _ *Gone) {
	g := &Gone{}
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

// AppendEnd appends what a snapshot ends with.
func AppendEnd(b []byte, n Counts, hash [16]byte) []byte {
	b = wire.PutUint(b, 1, n.Tasks)
	b = wire.PutUint(b, 2, n.Requests)
	b = wire.PutUint(b, 3, n.Nodes)
	b = wire.PutBytes(b, 4, hash[:])
	b = wire.PutUint(b, 5, n.Types)
	b = wire.PutUint(b, 6, n.Gone)
	b = wire.PutUint(b, 7, n.Trail)
	return wire.PutUint(b, 8, n.Schedules)
}

// DecodeEnd reads what AppendEnd writes.
func DecodeEnd(r *Reader) (n Counts, hash [16]byte) {
	for r.Next() {
		switch r.Num {
		case 1:
			n.Tasks = r.Uint(math.MaxUint64)
		case 2:
			n.Requests = r.Uint(math.MaxUint64)
		case 3:
			n.Nodes = r.Uint(math.MaxUint64)
		case 4:
			if copy(hash[:], r.Single()) != len(hash) {
				r.Fail("it is no hash")
			}
		case 5:
			n.Types = r.Uint(math.MaxUint64)
		case 6:
			n.Gone = r.Uint(math.MaxUint64)
		case 7:
			n.Trail = r.Uint(math.MaxUint64)
		case 8:
			n.Schedules = r.Uint(math.MaxUint64)
		default:
			r.Unknown()
		}
	}
	return n, hash
}
