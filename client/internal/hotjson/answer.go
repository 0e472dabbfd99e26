package hotjson

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// Room is reusable memory for the claimed task of an answer. Its content is valid until the next answer is read into
// it, except its strings and slices, which stay valid.
type Room struct {
	claimed wire.Claimed
	task    held
}

// Answer decodes body without sharing its memory. Without tasks it leaves out Answer.Task, the task that the call was
// about. room, if not nil, holds the task of Answer.Claimed. ok is false if body is not an answer.
func Answer(body []byte, tasks bool, room *Room) (a wire.Answer, ok bool) {
	r := NewReader(body)
	known := true
	r.Fields(func(name []byte) { known = answerField(r, name, &a, tasks, room) && known })
	if known && r.OK() {
		return a, true
	}
	return unmarshal[wire.Answer](body)
}

// unmarshal decodes with encoding/json. It is a separate function so that only this case allocates the value on the
// heap.
func unmarshal[T any](body []byte) (v T, ok bool) {
	if json.Unmarshal(body, &v) != nil {
		var zero T
		return zero, false
	}
	return v, true
}

// answerField reads a field of an answer. It returns false for fields that frequent answers do not have.
func answerField(r *Reader, name []byte, a *wire.Answer, tasks bool, room *Room) bool {
	switch string(name) {
	case "success":
		a.Success = r.Bool()
	case "repeated":
		a.Repeated = r.Bool()
	case "created":
		a.Created = r.Bool()
	case "replaced":
		a.Replaced = r.Bool()
	case "cancel_requested":
		a.CancelRequested = r.Bool()
	case "lease_remaining_ms":
		a.LeaseRemainingMS = r.Int()
	case "message":
		a.Message = r.Text()
	case "task":
		if !tasks {
			r.Raw()
			return true
		}
		a.Task = task(r, &held{})
	case "tasks":
		r.Items(func() { a.Tasks = appendTask(a.Tasks, task(r, &held{})) })
	case "claimed":
		if !r.Null() {
			if room == nil {
				room = &Room{}
			}
			a.Claimed = &room.claimed
			return room.read(r)
		}
	default:
		r.Raw()
		return false
	}
	return true
}

func appendTask(all []wire.Task, t *wire.Task) []wire.Task {
	if t == nil {
		return append(all, wire.Task{})
	}
	return append(all, *t)
}

// read reads the result of a claim in a complete. known is false if it has unexpected fields.
func (o *Room) read(r *Reader) (known bool) {
	o.claimed, known = wire.Claimed{}, true
	r.Fields(func(name []byte) {
		switch string(name) {
		case "task":
			o.claimed.Task = task(r, &o.task)
		case "tasks":
			r.Items(func() { o.claimed.Tasks = appendTask(o.claimed.Tasks, task(r, &held{})) })
		default:
			r.Raw()
			known = false
		}
	})
	return known
}

// held is a task together with the values of its pointers.
type held struct {
	wire.Task
	workerID  string
	token     uint64
	lease     int64
	claimedAt time.Time
	leaseEnds time.Time
	retention int64
	// typeBefore and workerBefore are the strings of the previous task here, which is usually alike, so that they
	// need not be allocated again.
	typeBefore, workerBefore string
}

// task reads a task into h; it returns nil for null. A task with rare fields is decoded by encoding/json.
func task(r *Reader, h *held) *wire.Task {
	if r.Null() {
		return nil
	}
	begin := *r
	known := true
	*h = held{typeBefore: h.TaskType, workerBefore: h.workerID}
	r.Fields(func(name []byte) { known = h.field(r, name) && known })
	if known && !r.Failed() {
		return &h.Task
	}
	*r = begin
	t := &wire.Task{}
	if json.Unmarshal(r.Raw(), t) != nil {
		r.Fail()
	}
	return t
}

// field reads a field of a task. It returns false for a field or form that it does not handle.
func (h *held) field(r *Reader, name []byte) bool {
	switch string(name) {
	case "id":
		h.ID = natural(r)
	case "task_type":
		h.TaskType = r.TextLike(h.typeBefore)
	case "params":
		h.Params = bytes.Clone(r.Raw())
	case "priority":
		h.Priority = int32Of(r)
	case "max_attempts":
		h.MaxAttempts = int32Of(r)
	case "attempts":
		h.Attempts = int32Of(r)
	case "idempotency_key":
		h.IdempotencyKey = r.Text()
	case "status":
		h.Status = status(r.Plain())
	case "created_at":
		instant(r, &h.CreatedAt)
	case "updated_at":
		instant(r, &h.UpdatedAt)
	case "cancel_requested":
		h.CancelRequested = r.Bool()
	default:
		return h.claimField(r, name)
	}
	return true
}

// claimField reads a field that only claimed tasks have.
func (h *held) claimField(r *Reader, name []byte) bool {
	if r.Null() {
		return true
	}
	switch string(name) {
	case "worker_id":
		h.workerID = r.TextLike(h.workerBefore)
		h.WorkerID = &h.workerID
	case "claim_token":
		h.token = natural(r)
		h.ClaimToken = &h.token
	case "lease_remaining_ms":
		h.lease = r.Int()
		h.LeaseRemainingMS = &h.lease
	case "claimed_at":
		instant(r, &h.claimedAt)
		h.ClaimedAt = &h.claimedAt
	case "lease_expires_at":
		instant(r, &h.leaseEnds)
		h.LeaseExpiresAt = &h.leaseEnds
	default:
		return h.submittedField(r, name)
	}
	return true
}

// submittedField reads a field that only some tasks are submitted with.
func (h *held) submittedField(r *Reader, name []byte) bool {
	switch string(name) {
	case "lease_ms":
		h.LeaseMS = r.Int()
	case "retention_ms":
		h.retention = r.Int()
		h.RetentionMS = &h.retention
	case "unique":
		h.Unique = r.Text()
	case "unique_ms":
		h.UniqueMS = r.Int()
	case "group":
		h.Group = r.Text()
	case "share_key":
		h.ShareKey = r.Text()
	case "traceparent":
		h.Traceparent = r.Text()
	case "attributes":
		h.Attributes = bytes.Clone(r.Raw())
	case "labels":
		h.Labels = wire.Labels{}
		r.Fields(func(label []byte) { h.Labels[string(label)] = r.Text() })
	default:
		r.Raw()
		return false
	}
	return true
}

// statuses are the frequent ones, so that they are not allocated again. It is never changed.
var statuses = [...]string{"pending", "claimed", "completed", "scheduled", "failed"}

func status(b []byte) string {
	for _, s := range statuses {
		if string(b) == s {
			return s
		}
	}
	return string(b)
}

func instant(r *Reader, t *time.Time) {
	if t.UnmarshalText(r.Plain()) != nil {
		r.Fail()
	}
}

func natural(r *Reader) uint64 {
	n := r.Int()
	if n < 0 {
		r.Fail()
	}
	return uint64(n)
}

func int32Of(r *Reader) int32 {
	n := r.Int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.Fail()
	}
	return int32(n)
}

// SubmitResult decodes an element of the answer to a submit of many. ok is false if it is malformed.
func SubmitResult(body []byte) (s wire.SubmitResult, ok bool) {
	r := NewReader(body)
	known := true
	r.Fields(func(name []byte) {
		switch string(name) {
		case "id":
			s.ID = natural(r)
		case "created":
			s.Created = r.Bool()
		case "replaced":
			s.Replaced = r.Bool()
		default:
			known = false
			r.Raw()
		}
	})
	if known && r.OK() {
		return s, true
	}
	return unmarshal[wire.SubmitResult](body)
}
