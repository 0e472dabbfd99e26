package sqs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/api/sqs/shape"
	"github.com/claimq/claimq/fsm"
)

// The attributes of a queue about dead letters, each with JSON as its value: where its messages go that were received
// often enough, and which queues' messages may come to it.
const (
	redriveName = "RedrivePolicy"
	allowName   = "RedriveAllowPolicy"
)

// Bounds of these.
const (
	receivesMax = 1_000
	sourcesMax  = 10
)

// readPolicy reads a policy by fn, which returns what is wrong with it, or "".
func readPolicy(name, policy string, fn func(v *shape.Value) (wrong string)) *Error {
	wrong := "The policy is not a valid JSON map."
	bad := shape.ReadJSON([]byte(policy), func(v *shape.Value) {
		if v.Kind == shape.Object {
			wrong = fn(v)
		}
	})
	if bad != nil || wrong != "" {
		return badValue(name, policy, wrong)
	}
	return nil
}

// setRedrive reads a RedrivePolicy into the dead letters of the type. "" takes them away.
func setRedrive(s *fsm.TypeSettings, policy string) *Error {
	s.DeadLetter, s.DeadLetterAfter = "", 0
	if policy == "" {
		return nil
	}
	return readPolicy(redriveName, policy, func(v *shape.Value) (wrong string) {
		target, most := v.Member("deadLetterTargetArn"), v.Member("maxReceiveCount")
		text, ok := most.Scalar()
		n, err := strconv.ParseInt(text, 10, 32)
		switch {
		case target.Kind == shape.None || most.Kind == shape.None:
			return "Redrive policy does not contain mandatory attribute: deadLetterTargetArn or maxReceiveCount."
		case !ok || err != nil || n < 1 || n > receivesMax:
			return "Invalid value for maxReceiveCount: " + shape.Shorten(text) + ", valid values are from 1 to " + strconv.Itoa(receivesMax) + " both inclusive."
		}
		s.DeadLetter, s.DeadLetterAfter = strings.Clone(queueOfARN(target.Text)), int32(n)
		if s.DeadLetter == "" {
			return "Dead letter target does not exist."
		}
		return ""
	})
}

// redriveOf is the inverse of setRedrive.
func redriveOf(s *fsm.TypeSettings, arn func(queue string) string) string {
	w := writer{b: []byte{'{'}}
	w.text("deadLetterTargetArn", arn(s.DeadLetter))
	w.text("maxReceiveCount", strconv.Itoa(int(s.DeadLetterAfter)))
	return string(append(w.b, '}'))
}

// queueOfARN returns the queue's name, or "" if arn is not the ARN of a queue. It ignores region and account.
func queueOfARN(arn string) string {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || !validQueueName(parts[5]) {
		return ""
	}
	return parts[5]
}

// mayRedrive refuses to send dead letters to a queue that does not exist, or does not take them from the queue of the
// call. ok is false if the host has answered.
func (o op) mayRedrive(s *fsm.TypeSettings) (bad *Error, ok bool) {
	if s.DeadLetter == "" {
		return nil, true
	}
	refused := func(reason string) (*Error, bool) {
		return badValue(redriveName, redriveOf(s, o.ARN), reason), true
	}
	q, _, bad, there := o.queueNamed(s.DeadLetter)
	switch {
	case s.DeadLetter == o.c.Queue:
		return refused("A queue cannot be the dead letter target of itself.")
	case bad != nil:
		return refused("Dead letter target does not exist.")
	case !there:
		return nil, false
	case q.fifo != isFIFO(o.c.Queue):
		return refused("Dead-letter queue must be same type of queue as the source.")
	case !q.allow.takes(o.c.Queue):
		return refused("The dead letter target does not allow this queue, by its " + allowName + ".")
	}
	return nil, true
}

// allow says which queues' messages may come to a queue as dead letters.
type allow struct {
	permission string // allowAll, denyAll or byQueue; "": it was not said, which is allowAll
	sources    string // of byQueue: names, with a comma between
}

const byQueue = "byQueue"

// String returns the policy as it is kept with the queue.
func (a allow) String() string {
	if a.sources == "" {
		return a.permission
	}
	return a.permission + "," + a.sources
}

// readAllow is the inverse of String.
func readAllow(s string) (a allow) {
	a.permission, a.sources, _ = strings.Cut(s, ",")
	return a
}

// set reads a RedriveAllowPolicy. "" takes it away.
func (a *allow) set(policy string) *Error {
	*a = allow{}
	if policy == "" {
		return nil
	}
	return readPolicy(allowName, policy, func(v *shape.Value) (wrong string) {
		a.permission = strings.Clone(v.Member("redrivePermission").Text)
		sources := v.Member("sourceQueueArns").Items
		switch {
		case !slices.Contains([]string{"allowAll", "denyAll", byQueue}, a.permission):
			return "redrivePermission must be allowAll, denyAll or " + byQueue + "."
		case (a.permission == byQueue) != (len(sources) > 0) || len(sources) > sourcesMax:
			return "sourceQueueArns must have 1 to " + strconv.Itoa(sourcesMax) + " queues with " + byQueue + ", and none without."
		}
		names := make([]string, len(sources))
		for i := range sources {
			if names[i] = queueOfARN(sources[i].Text); names[i] == "" {
				return "An element of sourceQueueArns is no name of a queue."
			}
		}
		a.sources = strings.Join(names, ",")
		return ""
	})
}

// json is the inverse of set.
func (a allow) json(arn func(queue string) string) string {
	w := writer{b: []byte{'{'}}
	w.text("redrivePermission", a.permission)
	if a.sources != "" {
		names := strings.Split(a.sources, ",")
		for i := range names {
			names[i] = arn(names[i])
		}
		w.texts("sourceQueueArns", "", names)
	}
	return string(append(w.b, '}'))
}

// takes reports whether messages of the queue may come as dead letters.
func (a allow) takes(queue string) bool {
	switch a.permission {
	case "denyAll":
		return false
	case byQueue:
		return slices.Contains(strings.Split(a.sources, ","), queue)
	}
	return true
}
