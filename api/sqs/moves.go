package sqs

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// A message move task moves the waiting tasks of a type. The state keeps the last move with the type.

// rateMax bounds the messages that a move moves in a second.
const rateMax = 500

func moveHandle(queue string, number uint64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatUint(number, 10) + " " + queue))
}

// readMoveHandle is the inverse of moveHandle; the number is 0 if handle is not the handle of a move.
func readMoveHandle(handle string) (queue string, number uint64) {
	text, err := base64.RawURLEncoding.DecodeString(handle)
	digits, queue, _ := strings.Cut(string(text), " ")
	if number, _ = strconv.ParseUint(digits, 10, 64); err != nil || !validQueueName(queue) {
		return "", 0
	}
	return queue, number
}

// moveFailures are the reasons why moves failed, as the model's clients know them.
var moveFailures = map[fsm.MoveFailure]string{
	fsm.MoveNoOrigin: "CouldNotDetermineMessageSource", fsm.MoveNoType: "AWS.SimpleQueueService.NonExistentQueue",
	fsm.MoveOfStep: "AStepOfATaskCannotBeMoved",
}

var moveStatuses = map[fsm.MoveStatus]string{
	fsm.MoveRunning: "RUNNING", fsm.MoveCompleted: "COMPLETED", fsm.MoveFailed: "FAILED", fsm.MoveCancelled: "CANCELLED",
}

// writeMove writes a move as an element of a list.
func (a *Answer) writeMove(w *writer) {
	v := a.Move
	if v.Status == fsm.MoveRunning {
		w.text("TaskHandle", a.TaskHandle)
	}
	w.text("Status", moveStatuses[v.Status])
	w.text("SourceArn", a.SourceARN)
	w.text("DestinationArn", a.DestinationARN)
	if v.Rate > 0 {
		w.number("MaxNumberOfMessagesPerSecond", int64(v.Rate))
	}
	w.number("ApproximateNumberOfMessagesMoved", v.Moved)
	w.number("ApproximateNumberOfMessagesToMove", v.ToMove)
	w.text("FailureReason", moveFailures[v.Failure])
	w.number("StartedTimestamp", v.StartedAt)
}

// moved looks up the queue whose messages the call is about.
func (o op) moved() (bad *Error, ok bool) {
	_, _, bad, ok = o.queue()
	if bad != nil {
		bad = noResource("SourceArn")
	}
	return bad, ok
}

func (o op) startMove() (*Answer, *Error) {
	if bad, ok := o.moved(); !ok {
		return nil, bad
	}
	sources := &Answer{}
	if _, ok := o.findQueues(sources, "", 1); !ok {
		return answered()
	}
	switch to := o.c.Destination; {
	case len(sources.QueueURLs) == 0:
		return nil, invalidParameter("Source queue must be configured as a Dead Letter Queue.")
	case to == "" && !o.MaySee(""): // not all types, so perhaps not where messages came from
		return nil, AccessDenied("Moving messages back to their queues needs a credential for all task types: name a DestinationArn.")
	case to == o.c.Queue || to != "" && isFIFO(to) != isFIFO(o.c.Queue):
		return nil, badValue("DestinationArn", o.ARN(to), "It must be another queue, and a FIFO queue if the source is one.")
	case to != "":
		if _, _, bad, ok := o.queueNamed(to); bad != nil {
			return nil, noResource("DestinationArn")
		} else if !ok {
			return answered()
		}
	}
	res, ok := o.Propose(command.MoveTasks{Type: o.c.Queue, To: o.c.Destination, Rate: int32(o.c.Rate.N), By: o.Caller()})
	switch {
	case !ok:
		return answered()
	case res.Code == "":
		return &Answer{TaskHandle: moveHandle(o.c.Queue, res.Type.Move.Number)}, nil
	case res.Type.Move != nil && res.Type.Move.Status == fsm.MoveRunning:
		return nil, invalidParameter("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	return nil, plain("OverLimit", "Too many message move tasks are running.")
}

// listMoves answers with the queue's last move.
func (o op) listMoves() (*Answer, *Error) {
	if bad, ok := o.moved(); !ok {
		return nil, bad
	}
	a := &Answer{SourceARN: o.ARN(o.c.Queue)}
	if !o.Read(func(m *fsm.Machine, now fsm.Stamp) {
		v, _ := m.Type(o.c.Queue, now)
		a.Move = v.Move
	}) {
		return answered()
	}
	if a.Move != nil {
		a.TaskHandle = moveHandle(o.c.Queue, a.Move.Number)
		if a.Move.To != "" {
			a.DestinationARN = o.ARN(a.Move.To)
		}
	}
	return a, nil
}

func (o op) cancelMove() (*Answer, *Error) {
	if bad, ok := o.moved(); !ok {
		return nil, bad
	}
	res, ok := o.Propose(command.MoveTasks{Type: o.c.Queue, Cancel: o.c.Number, By: o.Caller()})
	switch {
	case !ok:
		return answered()
	case res.Code == "":
		return &Answer{Move: res.Type.Move}, nil
	case res.Type.Move != nil && res.Type.Move.Number == o.c.Number:
		return nil, invalidParameter("Only active tasks can be cancelled.")
	}
	return nil, noResource("TaskHandle")
}
