package record

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// EncodedTasks packs waiting and ended tasks into the bytes of their records. Most tasks of a
// long queue wait and are not looked at until they are claimed. Parents and steps are not packed,
// because they share their plan.
type EncodedTasks struct{ Names TypeNames }

// TypeNames lets tasks that are unpacked share the strings of their type and share key with others.
type TypeNames interface {
	// NameOfType returns the name: the string that all tasks of the type share, if there are any.
	NameOfType(name []byte) string
	// ShareKeyOf returns the share key of tasks of the type: the string of the share, if there is one.
	ShareKeyOf(taskType string, key []byte) string
}

// BusyPages is the number of pages at the end that are not packed, because the tasks added last
// usually change next. They hold 8,192 tasks: what 64 connections submit at a time in batches of
// 100, and some more. Unpacked they take some 3 MB more. With 1,024 tasks, a fifth of a busy
// node's memory went into packing and unpacking.
const BusyPages = 128

// restingMax bounds the size of a record that is packed. It does not count what an ended task
// keeps for a repeat of its Complete (Then), at most 33 KiB for 1,000 follow-ups and a next claim
// of 1,000, because that would change the estimate of memory; see HeldBytes.
const restingMax = 4 << 10

// Rests reports whether the task waits or has ended, and is no parent, no step and not too large.
func (EncodedTasks) Rests(t *Task) bool { return IsResting(t) }

// IsResting reports whether the task is kept packed. It depends only on saved fields, because the
// estimate of memory depends on it.
func IsResting(t *Task) bool {
	if t.Status != StatusPending && t.Status != StatusScheduled && !t.Status.Ended() {
		return false
	}
	if o := t.Options; o != nil && (o.Step != nil || o.Parent != nil) {
		return false
	}
	return restingSize(t) <= restingMax
}

// restingSize estimates the size of the task's record without its numbers and its Then.
func restingSize(t *Task) int {
	n := len(t.Type) + len(t.Key) + len(t.Error) + workBytes(t)
	for i := range t.Log {
		n += attemptRecordBytes + len(t.Log[i].WorkerID) + len(t.Log[i].Error)
	}
	if o := t.Options; o != nil {
		n += optionsRecordBytes + o.textBytes()
		if o.Origin != nil {
			n += originRecordBytes + len(o.Origin.Type)
		}
		for _, l := range o.Labels {
			n += labelRecordBytes + len(l.Name) + len(l.Value)
		}
	}
	return n
}

// Approximate sizes of parts of a task's record.
const (
	attemptRecordBytes = 24
	optionsRecordBytes = 16
	labelRecordBytes   = 6
	originRecordBytes  = 12
)

// Pack appends the task's record.
func (EncodedTasks) Pack(b []byte, _ uint64, t *Task) []byte { return AppendTask(b, t) }

// Unpack reads the record.
func (w EncodedTasks) Unpack(b []byte, shared bool) *Task {
	var t Task
	key := w.read(b, &t, nil)
	switch {
	case key != "":
		// In one allocation, as in withParams.
		own := &struct {
			Task
			options Options
		}{Task: t, options: Options{ShareKey: key}}
		own.Options = &own.options
		if !shared {
			own.Params, own.Payload = slices.Clone(t.Params), slices.Clone(t.Payload)
		}
		return &own.Task
	case shared:
		own := t
		return &own
	}
	t.Payload = slices.Clone(t.Payload)
	return withParams(&t)
}

// TaskMemory is reusable memory for one unpacked task at a time. The zero value is ready to
// use. It is not safe for concurrent use.
type TaskMemory struct {
	task  Task
	log   []Attempt
	names NameCache
}

// UnpackInto is Unpack into memory. The task shares memory with b, and is valid until the
// next use of the memory. Its strings may be kept.
func (w EncodedTasks) UnpackInto(memory *TaskMemory, b []byte) *Task {
	clear(memory.log)
	memory.task = Task{Log: memory.log[:0]}
	if key := w.read(b, &memory.task, &memory.names); key != "" {
		memory.task.Options = &Options{ShareKey: key}
	}
	memory.log = memory.task.Log
	return &memory.task
}

// withParams returns a copy of the task with its own params. If the params nearly fill one of the
// fixed sizes, task and params share one allocation, because allocating is a large part of the
// cost of unpacking.
func withParams(t *Task) *Task {
	switch n := len(t.Params); {
	case n > 192 && n <= 256:
		own := &struct {
			Task
			room [256]byte
		}{}
		return own.copyWithParams(t, own.room[:])
	case n > 96 && n <= 128:
		own := &struct {
			Task
			room [128]byte
		}{}
		return own.copyWithParams(t, own.room[:])
	}
	return new(Task).copyWithParams(t, make([]byte, len(t.Params)))
}

// copyWithParams makes t a copy of from whose params are in room.
func (t *Task) copyWithParams(from *Task, room []byte) *Task {
	*t = *from
	if n := copy(room, from.Params); n > 0 {
		t.Params = room[:n:n]
	}
	return t
}

// read decodes the task, which shares memory with b. names may be nil. If the task's only option is
// its share key, read returns that and sets no options.
func (w EncodedTasks) read(b []byte, t *Task, names *NameCache) (shareKey string) {
	r := Scanner{Rest: b}
	for {
		before := r.Rest
		if !r.NextUntil(math.MaxInt32) {
			break
		}
		switch r.Num {
		case 1:
			t.ID = r.value
		case FieldType:
			t.Type = w.Names.NameOfType(r.Text)
		case FieldParams:
			t.Params = r.Text
		case FieldPayload:
			t.Payload = r.Text
		case 5:
			t.Priority = int32(protowire.DecodeZigZag(r.value))
		case 6:
			t.MaxAttempts = int32(protowire.DecodeZigZag(r.value))
		case 7:
			t.Attempts = int32(protowire.DecodeZigZag(r.value))
		case FieldKey:
			t.Key = string(r.Text)
		case 9:
			t.LeaseMS = int64(r.value)
		case FieldStatus:
			t.Status = Status(r.value)
		case FieldCreated:
			t.CreatedAt = int64(r.value)
		case 18:
			t.UpdatedAt = int64(r.value)
		case FieldShare: // of most the last field, and the only option
			shareKey = w.Names.ShareKeyOf(t.Type, r.Text)
		default: // rare in waiting tasks
			if shareKey != "" {
				t.Options = &Options{ShareKey: shareKey}
			}
			unpackRest(before, t, names)
			return ""
		}
	}
	if len(r.Rest) > 0 {
		panic(fmt.Sprintf("fsm: a task cannot be read back that was packed: behind field %d", r.Num))
	}
	return shareKey
}

// unpackRest reads the fields that follow in a task's record, into t, which has those before them.
func unpackRest(b []byte, t *Task, names *NameCache) {
	f := fromCached(b, names)
	f.task(t)
	mustUnpack(KindTask, f.End())
}

// mustUnpack panics if a packed record cannot be read, because then the memory is faulty or there
// is a bug.
func mustUnpack(kind Kind, err error) {
	if err != nil {
		panic(fmt.Sprintf("fsm: a %v cannot be read back that was packed: %v", kind, err))
	}
}
