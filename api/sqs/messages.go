package sqs

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

func (o op) send() (*Answer, *Error) {
	q, s, bad, ok := o.queue()
	if !ok {
		return nil, bad
	}
	done := make([]Done, len(o.c.Entries))
	tasks := make([]fsm.NewTask, 0, len(done))
	at := make([]int, 0, len(done)) // the entry of each task
	var bare []byte                 // what is kept of a message without attributes, the same for all
	bodies := make([]byte, 0, o.c.bodyBytes())
	for i := range o.c.Entries {
		e := &o.c.Entries[i]
		done[i].ID = e.ID
		if done[i].Bad = o.sendable(e, &q); done[i].Bad != nil {
			continue
		}
		from := len(bodies)
		bodies = append(bodies, e.Body...)
		tasks, at = append(tasks, o.task(e, bodies[from:], &q, &bare)), append(at, i)
		if o.c.Repeat != "" && !q.fifo { // then the key of a message that is sent again is taken, by the first
			t := &tasks[len(tasks)-1]
			t.Key, t.KeyOfType = o.c.Repeat+"-"+strconv.Itoa(i), true
		}
	}
	if len(tasks) > 0 {
		res, ok := o.Propose(command.Submit{Tasks: tasks})
		if !ok {
			return answered()
		}
		ids := idsOf(o.c.Queue)
		for i := range res.Submitted {
			e, d := &o.c.Entries[at[i]], &done[at[i]]
			if res.Submitted[i].Refused {
				d.Bad = badValue("DelaySeconds", strconv.FormatInt(e.Delay.Or(s.DelayMS/1_000), 10), "The message would expire before its delay is over.")
				continue
			}
			if q.fifo {
				d.Sequence = sequenceOf(res.Submitted[i].Task.ID)
			}
			d.MessageID, d.BodyMD5 = ids.of(res.Submitted[i].Task.ID), md5.Sum(tasks[i].Payload)
			if len(e.Attributes) > 0 {
				d.AttributesMD5 = md5OfAttributes(e.Attributes)
			}
			if len(e.System) > 0 {
				d.SystemMD5 = md5OfAttributes(e.System)
			}
		}
	}
	return o.finish(done)
}

// finish answers with the result of each entry. If the call is not a batch, the refusal of its only entry refuses the
// call.
func (o op) finish(done []Done) (*Answer, *Error) {
	if !operations[o.c.Op].batch && done[0].Bad != nil {
		return nil, done[0].Bad
	}
	return &Answer{Done: done}, nil
}

// sendable refuses a message that the queue does not take.
func (o op) sendable(e *Entry, q *queue) *Error {
	switch {
	case e.Bad != nil:
		return e.Bad
	case int64(e.size()) > q.maxBytes:
		return tooLong(q.maxBytes)
	case e.Dedup != "" && !q.fifo:
		return badValue("MessageDeduplicationId", e.Dedup, otherKind)
	case !q.fifo:
	case e.Group == "":
		return missing("MessageGroupId")
	case e.Delay.N != 0:
		return badValue("DelaySeconds", strconv.FormatInt(e.Delay.N, 10), otherKind)
	case e.Dedup == "" && !q.byContent:
		return invalidParameter("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
	}
	return nil
}

const otherKind = "The request includes a parameter that is not valid for this queue type."

// dedupMS is the time after a send for which its deduplication id stays taken, in milliseconds.
const dedupMS = 300_000

// order makes a task one of a FIFO queue: in the order of its group, and once for each deduplication id.
func (e *Entry) order(t *fsm.NewTask, q *queue) {
	scope := ""
	if q.perGroup {
		scope = e.Group
	}
	t.Group, t.ShareKey, t.AtOnce = e.Group, "", false
	t.Key, t.KeyOfType, t.UniqueMS = "sqs-"+base64.RawURLEncoding.EncodeToString(sumOf(scope + "\x00" + e.Dedup)[:18]), true, dedupMS
}

func sumOf(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// sequenceOf returns the sequence number of a message of a FIFO queue.
func sequenceOf(id uint64) string { return fmt.Sprintf("%020d", id) }

// task returns the task for a message: the group of the message becomes its share key, and what the message has besides
// its body goes into its attributes. *bare caches the attributes of a message that has nothing but a body.
func (o op) task(e *Entry, body []byte, q *queue, bare *[]byte) fsm.NewTask {
	if q.fifo && e.Dedup == "" {
		e.Dedup = hex.EncodeToString(sumOf(e.Body))
	}
	kept := *bare
	if kept == nil || !e.bare() {
		kept = e.kept(o.Caller())
	}
	if e.bare() {
		*bare = kept
	}
	now := o.Now().UnixMilli()
	t := fsm.NewTask{
		Type: o.c.Queue, Payload: body, MaxAttempts: fsm.DefaultAttempts,
		DelayMS: e.Delay.N * 1_000, AtOnce: e.Delay.Set && e.Delay.N == 0, ExpiresAt: now + q.retentionS*1_000, ExpiresAgain: true, Attributes: kept, ShareKey: e.Group,
	}
	if q.fifo {
		e.order(&t, q)
	}
	return t
}

// ids makes the ids of a queue's messages.
type ids [8]byte

func idsOf(queue string) (i ids) {
	sum := sha256.Sum256([]byte("claimq\x00" + queue))
	copy(i[:], sum[:])
	return i
}

// of returns the id of a task's message: a UUID of version 8, made of the queue's name and the task's id.
func (i ids) of(id uint64) string {
	var u [16]byte
	copy(u[:], i[:])
	binary.BigEndian.PutUint64(u[8:], id)
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	var text [36]byte
	b := hex.AppendEncode(text[:0], u[:4])
	for at := 4; at < 10; at += 2 {
		b = hex.AppendEncode(append(b, '-'), u[at:at+2])
	}
	return string(hex.AppendEncode(append(b, '-'), u[10:]))
}

// ofTask is like of, but a dead letter keeps the id of the message that it is a copy of.
func (i ids) ofTask(t *fsm.Task) string {
	if from := t.Opts().Origin; from != nil {
		return idsOf(from.Type).of(from.ID)
	}
	return i.of(t.ID)
}

func (o op) receive() (*Answer, *Error) {
	q, _, bad, ok := o.queue()
	if !ok {
		return nil, bad
	}
	names, bad := systemNames(o.c.Names)
	if bad != nil {
		return nil, bad
	}
	claim := command.ClaimNext{WorkerID: workerOf(o), Types: []string{o.c.Queue}, Limit: int32(o.c.MaxMessages.Or(1)), RequestID: o.c.Repeat, Runs: q.fifo}
	if q.fifo && o.c.AttemptID != "" {
		sum := sha256.Sum256(strconv.AppendInt([]byte(o.c.Queue+" "), o.c.MaxMessages.N, 10))
		claim.RequestID = RepeatOf(o.Caller(), o.c.AttemptID, o.c.Op, sum)
	}
	if o.c.Visibility.Set {
		claim.LeaseMS = leaseOf(o.c.Visibility.N)
	}
	res, ok := o.Claim(claim, time.Duration(o.c.Wait.Or(q.waitS))*time.Second)
	if !ok {
		return answered()
	}
	a, ids := &Answer{Messages: make([]Message, 0, len(res.Claims))}, idsOf(o.c.Queue)
	for i := range res.Claims {
		if c := &res.Claims[i]; c.Live && c.Task.Status == fsm.StatusClaimed { // in a repeat some may be over
			a.Messages = append(a.Messages, o.message(c, ids, names))
		}
	}
	return a, nil
}

// The system attributes of a message that can be asked for.
const (
	firstReceived = "ApproximateFirstReceiveTimestamp"
	receiveCount  = "ApproximateReceiveCount"
	sentAt        = "SentTimestamp"
	sourceName    = "DeadLetterQueueSourceArn"
	groupName     = "MessageGroupId"
	sequenceName  = "SequenceNumber"
)

// systemAttributes are the names in the model, sorted. An answer leaves out those that the message does not have.
var systemAttributes = []string{
	firstReceived, receiveCount, traceHeader, sourceName, "MessageDeduplicationId", groupName, "SenderId", sentAt, sequenceName,
}

// systemNames returns the system attributes that are asked for. It refuses other names, also those of queue attributes,
// which the model permits in the older parameter AttributeNames.
func systemNames(names []string) ([]string, *Error) {
	if slices.Contains(names, "All") {
		return systemAttributes, nil
	}
	for _, name := range names {
		if !slices.Contains(systemAttributes, name) {
			return nil, unknownAttribute(name)
		}
	}
	return names, nil
}

// message returns a claimed task as a message.
func (o op) message(c *fsm.Claim, ids ids, names []string) Message {
	t := c.Task
	body := t.Payload
	if body == nil {
		body = t.Params // of a task that a native client has submitted
	}
	m := Message{ID: ids.ofTask(t), Body: readable(body, o.c.Query), Handle: handleOf(o.c.Queue, command.Hold{ID: t.ID, WorkerID: t.WorkerID, Token: c.Token})}
	if len(names)+len(o.c.MessageNames) == 0 {
		return m
	}
	attributes, system := readKept(t.Opts().Attributes)
	m.Attributes = named(attributes, o.c.MessageNames)
	for _, name := range systemAttributes {
		if !slices.Contains(names, name) {
			continue
		}
		v := o.systemAttribute(t, name)
		for i := range system {
			if v == "" && system[i].Name == name {
				v = system[i].Value
			}
		}
		if v != "" {
			m.System = append(m.System, Pair{name, v})
		}
	}
	return m
}

// readable replaces what the answer cannot carry in a body, because a native client may have sent any bytes. It is
// called before the MD5 is computed, so that the sum is that of the body as the client reads it.
func readable(body []byte, query bool) []byte {
	if utf8.Valid(body) && (!query || validXML(body)) {
		return body
	}
	return bytes.Map(func(r rune) rune {
		if query && !inXML(r) {
			return utf8.RuneError
		}
		return r
	}, body)
}

func (o op) systemAttribute(t *fsm.Task, name string) string {
	switch name {
	case sourceName:
		if of := t.Opts().Origin; of != nil {
			return o.ARN(of.Type)
		}
	case firstReceived:
		return strconv.FormatInt(t.Claims()[0].ClaimedAt, 10) // the first of the last 20 receives
	case receiveCount:
		return strconv.Itoa(int(t.Attempts))
	case sentAt:
		return strconv.FormatInt(t.CreatedAt, 10)
	case groupName:
		return cmp.Or(t.Opts().Group, t.Opts().ShareKey)
	case sequenceName:
		if isFIFO(t.Type) {
			return sequenceOf(t.ID)
		}
	}
	return ""
}

// settle proposes a command about the claim of each of the call's entries, all in one entry of the log. one returns the
// command; judge returns the error that its result means, or nil.
func (o op) settle(one func(e *Entry, h command.Hold) command.Command, judge func(e *Entry, code fsm.Code) *Error) (*Answer, *Error) {
	if _, _, bad, ok := o.queue(); !ok {
		return nil, bad
	}
	done := make([]Done, len(o.c.Entries))
	ops, at := make([]command.Command, 0, len(done)), make([]int, 0, len(done)) // at has the entry of each
	for i := range o.c.Entries {
		e := &o.c.Entries[i]
		done[i].ID, done[i].Bad = e.ID, e.Bad
		if e.Bad != nil {
			continue
		}
		hold, ok := readHandle(o.c.Queue, e.Handle)
		if !ok {
			done[i].Bad = badHandle(e.Handle)
			continue
		}
		ops, at = append(ops, one(e, hold)), append(at, i)
	}
	results, ok := o.proposeAll(ops)
	if !ok {
		return answered()
	}
	for i := range results {
		done[at[i]].Bad = judge(&o.c.Entries[at[i]], results[i].Code)
	}
	return o.finish(done)
}

// proposeAll proposes commands in one entry, and returns the result of each.
func (o op) proposeAll(ops []command.Command) (results []fsm.Result, ok bool) {
	if len(ops) == 0 {
		return nil, true
	}
	if len(ops) == 1 {
		res, ok := o.Propose(ops[0])
		return []fsm.Result{res}, ok
	}
	res, ok := o.Propose(command.Batch{Ops: ops})
	return res.Results, ok
}

// delete completes tasks, also after their visibility timeout if they were not received again. It succeeds without
// effect for a message that was received again, which stays with its new receiver, and for one that no longer exists. A
// FIFO queue refuses a late delete, because the group may have been received again.
func (o op) delete() (*Answer, *Error) {
	fifo := isFIFO(o.c.Queue)
	return o.settle(func(_ *Entry, h command.Hold) command.Command {
		return command.Complete{Hold: h, Late: !fifo}
	}, func(e *Entry, code fsm.Code) *Error {
		switch code {
		case fsm.CodeStaleClaim, fsm.CodeWrongWorker, fsm.CodeTaskCompleted: // others have it, or have done it
			o.DeletedLate()
			if fifo && code != fsm.CodeTaskCompleted {
				return badValue("ReceiptHandle", e.Handle, "The receipt handle has expired.")
			}
		}
		return nil
	})
}

// changeVisibility moves the end of claims. 0 ends them, and unlike a release counts the attempt.
func (o op) changeVisibility() (*Answer, *Error) {
	return o.settle(func(e *Entry, h command.Hold) command.Command {
		if e.Visibility.N == 0 {
			return command.Fail{Hold: h, RetryIn: true}
		}
		return command.Extend{Hold: h, LeaseMS: e.Visibility.N * 1_000, Exact: true}
	}, func(_ *Entry, code fsm.Code) *Error {
		if code != "" {
			return notInFlight()
		}
		return nil
	})
}
