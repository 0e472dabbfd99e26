package sqs

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
)

// ownSettings are the settings of a type that a queue sets.
const ownSettings = fsm.TypeQueue | fsm.TypeDelay | fsm.TypeDeadLetter | fsm.TypeLease | fsm.TypeMaxAttempts | fsm.TypeBackoff | fsm.TypeRetention

// noBackoff makes a message whose visibility timeout is over available at once.
var noBackoff = &fsm.Backoff{MaxMS: 1, Factor: 1_000_000}

// triesMax bounds how often a change of a queue is tried again because of other changes.
const triesMax = 8

// queue looks up the call's queue. bad is nil and ok false if the host has answered.
func (o op) queue() (q queue, s fsm.TypeSettings, bad *Error, ok bool) {
	return o.queueNamed(o.c.Queue)
}

func (o op) queueNamed(name string) (q queue, s fsm.TypeSettings, bad *Error, ok bool) {
	if !o.MaySee(name) {
		return q, s, noQueue(o.c.Query), false
	}
	if !o.Look(func(m *fsm.Machine) { s = m.SettingsOf(name) }) {
		return q, s, nil, false
	}
	if q, ok = readQueue(s.Queue); !ok {
		return q, s, noQueue(o.c.Query), false
	}
	return q, s, nil, true
}

func (o op) createQueue() (*Answer, *Error) {
	if said := slices.Contains(o.c.Attributes, Pair{fifoName, "true"}); said != isFIFO(o.c.Queue) {
		return nil, invalidParameter("The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length, and its FifoQueue must be true.")
	}
	for range triesMax {
		q, s, bad, known := o.queue()
		switch {
		case !known && bad == nil:
			return answered()
		case known:
			if bad := sameQueue(q, s, o.c.Attributes); bad != nil {
				return nil, bad
			}
			return &Answer{QueueURL: o.URL(o.c.Queue)}, nil
		case !o.Operates():
			return nil, AccessDenied("Making a queue needs the role operator.")
		}
		was := s.Queue
		q = newQueue(o.c.Queue, o.Now().Unix())
		q.tags = o.c.Tags
		s.LeaseMS = leaseOf(visibilityDefault)
		if bad := q.set(&s, o.c.Attributes); bad != nil {
			return nil, bad
		}
		if bad, ok := o.mayRedrive(&s); !ok || bad != nil {
			return nil, bad
		}
		s.LimitSet, s.MaxAttempts, s.Backoff, s.RetentionMS = true, 0, noBackoff, fsm.KeepNone
		done, bad, ok := o.change(q, s, was, ownSettings)
		switch {
		case !ok:
			return answered()
		case bad != nil:
			return nil, bad
		case done:
			return &Answer{QueueURL: o.URL(o.c.Queue)}, nil
		}
	}
	return nil, busy()
}

func busy() *Error { return Unavailable("The queue is being changed by others.") }

// sameQueue refuses attributes that differ from those of a queue.
func sameQueue(q queue, s fsm.TypeSettings, attributes []Pair) *Error {
	for _, a := range attributes {
		other, settings := q, s
		if bad := other.setOne(&settings, a); bad != nil {
			return bad
		}
		if other.String() != q.String() || !settings.Equal(&s) {
			return &Error{Shape: "QueueNameExists", Code: "QueueAlreadyExists", Status: 400, Text: "A queue already exists with the same name and a different value for attribute " + a.Name}
		}
	}
	return nil
}

// change replaces the queue's settings, which were read as was, by q, and the settings of its type that are in set by
// those of s. done is false if the queue was changed since it was read.
func (o op) change(q queue, s fsm.TypeSettings, was string, set fsm.TypeFields) (done bool, bad *Error, ok bool) {
	if s.Queue = q.String(); len(s.Queue) > queueBytesMax {
		return false, invalidParameter("The tags of the queue are too long together."), true
	}
	res, ok := o.Propose(command.SetType{Type: o.c.Queue, Set: set, Settings: s, By: o.Caller(), IfQueue: true, Queue: was})
	switch {
	case !ok:
		return false, nil, false
	case res.Code == "":
		return true, nil, true
	case res.Type != nil:
		return false, nil, true
	}
	return false, plain("OverLimit", "Too many task types have settings."), true
}

// edit reads the queue of the call, changes it with fn and writes it, and repeats that if it was changed meanwhile.
func (o op) edit(set fsm.TypeFields, fn func(q *queue, s *fsm.TypeSettings) *Error) (*Answer, *Error) {
	for range triesMax {
		q, s, bad, ok := o.queue()
		if !ok {
			return nil, bad
		}
		was := s.Queue
		q.modified = o.Now().Unix()
		if bad := fn(&q, &s); bad != nil {
			return nil, bad
		}
		if set&fsm.TypeDeadLetter != 0 {
			if bad, ok := o.mayRedrive(&s); !ok || bad != nil {
				return nil, bad
			}
		}
		done, bad, ok := o.change(q, s, was, set)
		switch {
		case !ok:
			return answered()
		case bad != nil:
			return nil, bad
		case done:
			return &Answer{}, nil
		}
	}
	return nil, busy()
}

// settingOf has the settings of a type that are attributes of its queue.
var settingOf = map[string]fsm.TypeFields{delayName: fsm.TypeDelay, visibilityName: fsm.TypeLease, redriveName: fsm.TypeDeadLetter}

func (o op) setQueueAttributes() (*Answer, *Error) {
	if len(o.c.Attributes) == 0 {
		return nil, missing("Attributes")
	}
	set := fsm.TypeQueue
	for _, a := range o.c.Attributes {
		set |= settingOf[a.Name]
	}
	return o.edit(set, func(q *queue, s *fsm.TypeSettings) *Error { return q.set(s, o.c.Attributes) })
}

func (o op) tag() (*Answer, *Error) {
	return o.edit(fsm.TypeQueue, func(q *queue, _ *fsm.TypeSettings) *Error {
		kept := slices.DeleteFunc(slices.Clone(q.tags), func(t Pair) bool {
			return slices.Contains(o.c.TagKeys, t.Name) || slices.ContainsFunc(o.c.Tags, func(n Pair) bool { return n.Name == t.Name })
		})
		if q.tags = append(kept, o.c.Tags...); len(q.tags) > tagsMax {
			return tooManyTags(o.c.Queue)
		}
		slices.SortFunc(q.tags, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
}

func (o op) listQueueTags() (*Answer, *Error) {
	q, _, bad, ok := o.queue()
	if !ok {
		return nil, bad
	}
	return &Answer{Tags: q.tags}, nil
}

// deleteQueue purges the queue before it goes, so that an error leaves a queue that can be deleted again, and once more
// for what was sent meanwhile.
func (o op) deleteQueue() (*Answer, *Error) {
	_, s, bad, ok := o.queue()
	if !ok {
		return nil, bad
	}
	if !o.Purge(o.c.Queue) {
		return answered()
	}
	res, ok := o.Propose(command.SetType{Type: o.c.Queue, Set: ownSettings, By: o.Caller(), IfQueue: true, Queue: s.Queue})
	if !ok {
		return answered()
	}
	if res.Code != "" {
		return nil, busy()
	}
	if !o.Purge(o.c.Queue) {
		return answered()
	}
	return &Answer{}, nil
}

func (o op) purgeQueue() (*Answer, *Error) {
	if _, _, bad, ok := o.queue(); !ok {
		return nil, bad
	}
	if !o.Purge(o.c.Queue) {
		return answered()
	}
	return &Answer{}, nil
}

func (o op) getQueueURL() (*Answer, *Error) {
	if _, _, bad, ok := o.queue(); !ok {
		return nil, bad
	}
	return &Answer{QueueURL: o.URL(o.c.Queue)}, nil
}

func (o op) getQueueAttributes() (*Answer, *Error) {
	if !o.MaySee(o.c.Queue) {
		return nil, noQueue(o.c.Query)
	}
	var v fsm.TypeView
	if !o.Read(func(m *fsm.Machine, now fsm.Stamp) { v, _ = m.Type(o.c.Queue, now) }) {
		return answered()
	}
	q, ok := readQueue(v.Settings.Queue)
	if !ok {
		return nil, noQueue(o.c.Query)
	}
	pairs, bad := asked(q.all(&v.Settings, &v.Counts, o.c.Queue, o.ARN), o.c.Names)
	if bad != nil {
		return nil, bad
	}
	return &Answer{Attributes: pairs}, nil
}

// Bounds of a list of queues.
const (
	listMax  = 1_000
	typesMax = 500 // types examined within one read
)

func (o op) listQueues() (*Answer, *Error) {
	if o.c.Op == ListDeadLetterSourceQueues {
		if _, _, bad, ok := o.queue(); !ok {
			return nil, bad
		}
	}
	after := ""
	if o.c.NextToken != "" {
		name, err := base64.RawURLEncoding.DecodeString(o.c.NextToken)
		if err != nil || !o.c.MaxResults.Set || !validQueueName(string(name)) {
			return nil, invalidParameter("Invalid NextToken.")
		}
		after = string(name)
	}
	limit := int(o.c.MaxResults.Or(listMax))
	a := &Answer{}
	after, ok := o.findQueues(a, after, limit)
	if !ok {
		return answered()
	}
	if len(a.QueueURLs) == limit && o.c.MaxResults.Set {
		a.NextToken = base64.RawURLEncoding.EncodeToString([]byte(after))
	}
	return a, nil
}

// findQueues adds up to limit queues that come after after, and returns the last type examined. ok is false if the host
// has answered.
func (o op) findQueues(a *Answer, after string, limit int) (last string, ok bool) {
	for more := true; more; {
		if !o.Read(func(m *fsm.Machine, _ fsm.Stamp) { after, more = o.list(m, a, after, limit) }) {
			return "", false
		}
	}
	return after, true
}

// list adds queues that come after after to the answer, from the next typesMax types: those with the prefix, or those
// whose dead letters go to the queue of the call.
func (o op) list(m *fsm.Machine, a *Answer, after string, limit int) (last string, more bool) {
	seen := 0
	for name, s := range m.TypesWithSettings(after) {
		if len(a.QueueURLs) == limit {
			return after, false
		}
		if seen++; seen > typesMax {
			return after, true
		}
		after = name
		if s.Queue != "" && strings.HasPrefix(name, o.c.Prefix) && (o.c.Queue == "" || s.DeadLetter == o.c.Queue) && o.MaySee(name) {
			a.QueueURLs = append(a.QueueURLs, o.URL(name))
		}
	}
	return after, false
}
