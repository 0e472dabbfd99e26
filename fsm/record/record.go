package record

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The records of a snapshot are messages of fsm.proto. The state hash is computed from the
// same bytes, so every saved field must be in one of them, and a new field raises
// FeatureLevel.

// Kind says which message a record is. The numbers are in snapshots and in the state hash and
// never change; sections are in their order.
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
	KindTurn     Kind = 9
	KindShare    Kind = 10
	KindHistory  Kind = 14
	KindEnd      Kind = 255 // not part of the state
)

// String returns the kind's name for messages.
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
	case KindTurn:
		return "turn"
	case KindShare:
		return "share"
	case KindHistory:
		return "history"
	case KindEnd:
		return "end"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Counts has the number of records of each kind.
type Counts struct{ Tasks, Requests, Nodes, Types, Gone, Trail, Schedules, Turns, Shares, Histories uint64 }

// TrailHeader is the trail's part of the header's record; event.Header is one.
type TrailHeader interface {
	// Code reads or writes the fields 15 to 21.
	Code(f *Fields)
}

// AppendHeader appends the header's record, including the trail's header and the counts.
func AppendHeader(b []byte, h *Header, of TrailHeader, n Counts) []byte {
	f := To(b)
	f.header(h, of, &n)
	return f.Out
}

// ReadHeader reads what AppendHeader writes, the trail's part into of.
func ReadHeader(f *Fields, of TrailHeader) (h Header, n Counts) {
	f.header(&h, of, &n)
	_ = f.End() // the caller checks f.Err
	return h, n
}

func (f *Fields) header(h *Header, of TrailHeader, n *Counts) {
	f.Uint(1, &h.Index)
	f.Int(2, &h.Stamp.U)
	f.Int(3, &h.Stamp.T)
	f.Uint32(4, &h.Level)
	f.ID(5, &h.NextID)
	f.ID(6, &h.NextToken)
	f.ID(7, &h.NextRequest)
	f.Uint(8, &n.Tasks)
	f.Uint(9, &n.Requests)
	f.Uint(10, &n.Nodes)
	f.Uint(11, &n.Types)
	f.Uint(12, &n.Gone)
	f.Uint(13, &n.Trail)
	f.Uint(14, &n.Schedules)
	of.Code(f)
	f.Uint(22, &h.Chain)
	f.Uint(23, &h.Ahead)
	f.joinTokens(24, &h.JoinTokens)
	f.Bytes(25, &h.PageSecret)
	h.Defaults.Code(f, 26)
	f.Uint(27, &n.Turns)
	f.Uint(28, &n.Shares)
	f.Uint(30, &n.Histories)
}

// AppendTask appends the record of the task.
func AppendTask(b []byte, t *Task) []byte {
	f := To(b)
	f.task(t)
	return f.Out
}

// ReadTask reads the record of a task into t, whose params and payload then share memory with the
// record.
func ReadTask(f *Fields, t *Task) {
	f.shared = true
	f.task(t)
	_ = f.End() // the caller checks f.Err
}

func (f *Fields) task(t *Task) {
	f.ID(1, &t.ID)
	f.interned(FieldType, &t.Type)
	f.data(FieldParams, &t.Params)
	f.data(FieldPayload, &t.Payload)
	f.Sint(5, &t.Priority)
	f.Sint(6, &t.MaxAttempts)
	f.Sint(7, &t.Attempts)
	f.Text(FieldKey, &t.Key)
	f.Int(9, &t.LeaseMS)
	f.Enum(FieldStatus, (*uint8)(&t.Status), uint8(StatusCancelled))
	f.interned(FieldWorker, &t.WorkerID)
	f.ID(12, &t.Token)
	f.Uint32(13, &t.LeaseSeq)
	f.Int(14, &t.ClaimLeaseMS)
	f.Int(15, &t.LeaseEndU)
	f.Int(16, &t.ClaimedAt)
	f.Int(FieldCreated, &t.CreatedAt)
	f.Int(18, &t.UpdatedAt)
	f.Int(19, &t.CompletedAt)
	f.Bytes(20, &t.Result)
	f.Bytes(21, &t.ResultPayload)
	f.Text(FieldError, &t.Error)
	for e := Each(); Next(&e, f, 23, &t.Log, math.MaxInt); {
		a := &t.Log[e.At]
		f.attempt(a)
		if f.Reading && a.Error == t.Error {
			a.Error = t.Error // share one string
		}
	}
	f.Int(24, &t.RunAt)
	f.Int(25, &t.RemoveAt)
	f.Bool(26, &t.CancelRequested)
	if o := f.options(t); o != nil {
		o.before(f)
	}
	f.then(fieldThen, &t.Then)
	if o := f.options(t); o != nil {
		o.after(f)
	}
}

// data is Bytes for the params or payload of a task.
func (f *Fields) data(num protowire.Number, v *[]byte) {
	if f.shared && f.Num == num {
		*v, _ = Part(f, num, *v)
		return
	}
	f.Bytes(num, v)
}

// options returns the task's options. It creates them if the next field to read belongs to
// them.
func (f *Fields) options(t *Task) *Options {
	if t.Options == nil && f.Num != 0 && f.Num != fieldThen {
		t.Options = &Options{}
	}
	return t.Options
}

const fieldThen = 34 // between the fields of options, but not one of them

// then reads or writes field num, a message.
func (f *Fields) then(num protowire.Number, v **Then) {
	m, ok := f.Message(num, *v != nil)
	if !ok {
		return
	}
	if *v == nil {
		*v = &Then{}
	}
	t := *v
	for e := Each(); Next(&e, f, 1, &t.Submitted, math.MaxInt); {
		f.ID(1, &t.Submitted[e.At].ID)
		f.Bool(2, &t.Submitted[e.At].Created)
		f.Bool(3, &t.Submitted[e.At].Replaced)
	}
	f.claims(2, &t.Claims)
	f.EndMessage(m)
}

// claims reads or writes the repeated field num.
func (f *Fields) claims(num protowire.Number, claims *[]ClaimRef) {
	for e := Each(); Next(&e, f, num, claims, math.MaxInt); {
		f.ID(1, &(*claims)[e.At].TaskID)
		f.ID(2, &(*claims)[e.At].Token)
	}
}

func (f *Fields) attempt(a *Attempt) {
	f.interned(1, &a.WorkerID)
	f.ID(2, &a.Token)
	f.Int(3, &a.ClaimedAt)
	f.Int(4, &a.EndedAt)
	f.Enum(5, (*uint8)(&a.Outcome), uint8(OutcomeCancelled))
	f.Text(6, &a.Error)
}

// AppendRequest appends the record of the claim request with that sequence number.
func AppendRequest(b []byte, seq uint64, q *Request) []byte {
	f := To(b)
	f.request(&seq, q)
	return f.Out
}

// ReadRequest reads the record.
func ReadRequest(f *Fields) (seq uint64, _ *Request) {
	q := &Request{}
	f.request(&seq, q)
	_ = f.End() // the caller checks f.Err
	return seq, q
}

func (f *Fields) request(seq *uint64, q *Request) {
	f.ID(1, seq)
	f.Text(fieldRequestID, &q.ID)
	f.requestClaims(fieldClaims, &q.Claims)
	f.Int32(4, &q.Live)
	f.Int(fieldForgetU, &q.ForgetU)
}

// requestClaims reads or writes the repeated field num. Asked is left out of a claim if it equals
// that of the claim before.
func (f *Fields) requestClaims(num protowire.Number, claims *[]RequestClaim) {
	var last RequestClaim
	for e := Each(); Next(&e, f, num, claims, math.MaxInt); {
		c := &(*claims)[e.At]
		f.ID(1, &c.TaskID)
		f.ID(2, &c.Token)
		f.Uint32(3, &c.Place)
		if f.Reading || c.Asked != last.Asked {
			f.Uint(fieldAsked, &c.Asked)
		}
		if f.Reading {
			switch c.Asked {
			case 0:
				c.Asked = last.Asked
			case last.Asked:
				f.Fail("it is written although the claim before has it")
			}
			if c.Place < last.Place {
				f.Fail("places that do not ascend")
			}
		}
		last = *c
	}
}

// AppendType appends the record of the task type.
func AppendType(b []byte, t *TaskType) []byte {
	f := To(b)
	f.taskType(t)
	return f.Out
}

// ReadType reads the record.
func ReadType(f *Fields) *TaskType {
	t := &TaskType{}
	f.taskType(t)
	_ = f.End() // the caller checks f.Err
	return t
}

func (f *Fields) taskType(t *TaskType) {
	f.interned(1, &t.Name)
	t.Settings.Code(f, 2)
	f.Int(3, &t.Bucket)
	f.Int(4, &t.BucketT)
	f.move(&t.Move)
}

// AppendGone appends the record of the removed task with that id.
func AppendGone(b []byte, id uint64, g *Gone) []byte {
	f := To(b)
	f.gone(&id, g)
	return f.Out
}

// ReadGone reads the record.
func ReadGone(f *Fields) (id uint64, _ *Gone) {
	g := &Gone{}
	f.gone(&id, g)
	_ = f.End() // the caller checks f.Err
	return id, g
}

func (f *Fields) gone(id *uint64, g *Gone) {
	f.ID(1, id)
	f.Text(goneKey, &g.Key)
	f.Enum(3, (*uint8)(&g.Status), uint8(StatusCancelled))
	f.interned(goneWorker, &g.WorkerID)
	f.ID(5, &g.Token)
	f.Enum(6, (*uint8)(&g.Outcome), uint8(OutcomeCancelled))
	f.Uint(7, &g.Same)
	f.Int(goneForgetU, &g.ForgetU)
	f.then(goneThen, &g.Then)
	f.interned(goneType, &g.Type)
	f.Bool(goneKeyOfType, &g.KeyOfType)
	f.Int(50, &g.KeyUntil)
}

// AppendEnd appends the end of a snapshot.
func AppendEnd(b []byte, n Counts, hash [16]byte) []byte {
	f := To(b)
	sum := hash[:]
	f.end(&n, &sum)
	return f.Out
}

// ReadEnd reads what AppendEnd writes.
func ReadEnd(f *Fields) (n Counts, hash [16]byte) {
	var sum []byte
	f.end(&n, &sum)
	_ = f.End() // the caller checks f.Err
	if sum != nil && copy(hash[:], sum) != len(hash) {
		f.Fail("it is no hash")
	}
	return n, hash
}

func (f *Fields) end(n *Counts, hash *[]byte) {
	f.Uint(1, &n.Tasks)
	f.Uint(2, &n.Requests)
	f.Uint(3, &n.Nodes)
	f.Bytes(4, hash)
	f.Uint(5, &n.Types)
	f.Uint(6, &n.Gone)
	f.Uint(7, &n.Trail)
	f.Uint(8, &n.Schedules)
	f.Uint(9, &n.Turns)
	f.Uint(10, &n.Shares)
	f.Uint(14, &n.Histories)
}
