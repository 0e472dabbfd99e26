package sqs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claimq/claimq/fsm"
)

// A queue is a task type with settings of a queue. What native clients know, too, are settings of the type: its lease,
// how many attempts its tasks have, and that they are removed as they end.

// queue has the settings of a queue that native clients do not know.
type queue struct {
	created, modified int64 // in seconds
	waitS             int64
	retentionS        int64
	maxBytes          int64
	encrypted         bool // SqsManagedSseEnabled, which is only kept and shown
	fifo              bool // by its name
	byContent         bool // a message without a deduplication id has one by its body
	perGroup          bool // deduplication ids are of a group
	highThroughput    bool // FifoThroughputLimit, which is only kept and shown
	allow             allow
	tags              []Pair
}

func newQueue(name string, now int64) queue {
	return queue{created: now, modified: now, retentionS: 345_600, maxBytes: batchBytes, encrypted: true, fifo: isFIFO(name)}
}

// String encodes the settings to be stored with the type: numbers, and tags as a query.
func (q *queue) String() string {
	b := make([]byte, 0, 64)
	flags := int64(0)
	for i, flag := range q.flags() {
		if *flag {
			flags |= 1 << i
		}
	}
	for _, n := range []int64{q.created, q.modified, q.waitS, q.retentionS, q.maxBytes, flags} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(append(b, q.allow.String()...), ' ')
	for i, t := range q.tags {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(append(append(b, url.QueryEscape(t.Name)...), '='), url.QueryEscape(t.Value)...)
	}
	return string(b)
}

// flags are the settings that are kept as the bits of a number.
func (q *queue) flags() [5]*bool {
	return [...]*bool{&q.encrypted, &q.fifo, &q.byContent, &q.perGroup, &q.highThroughput}
}

// readQueue is the inverse of String. ok is false if a type is no queue.
func readQueue(s string) (q queue, ok bool) {
	var flags int64
	for _, n := range []*int64{&q.created, &q.modified, &q.waitS, &q.retentionS, &q.maxBytes, &flags} {
		part, rest, found := strings.Cut(s, " ")
		v, err := strconv.ParseInt(part, 10, 64)
		if !found || err != nil {
			return queue{}, false
		}
		*n, s = v, rest
	}
	for i, flag := range q.flags() {
		*flag = flags>>i&1 == 1
	}
	allowed, s, _ := strings.Cut(s, " ")
	q.allow = readAllow(allowed)
	for s != "" {
		var part string
		part, s, _ = strings.Cut(s, "&")
		name, value, _ := strings.Cut(part, "=")
		n, err1 := url.QueryUnescape(name)
		v, err2 := url.QueryUnescape(value)
		if err1 != nil || err2 != nil {
			return queue{}, false
		}
		q.tags = append(q.tags, Pair{n, v})
	}
	return q, true
}

// queueBytesMax bounds the encoded settings of a queue, with its tags. A cluster has at most 10,000 types with
// settings.
const queueBytesMax = 8 << 10

// attribute is an attribute of a queue that can be set.
type attribute struct {
	name        string
	least, most int64
	of          func(q *queue, s *fsm.TypeSettings) *int64
}

// numbers are the attributes that are numbers which only the queue knows.
var numbers = []attribute{
	{"MaximumMessageSize", 1_024, batchBytes, func(q *queue, _ *fsm.TypeSettings) *int64 { return &q.maxBytes }},
	{"MessageRetentionPeriod", 60, 1_209_600, func(q *queue, _ *fsm.TypeSettings) *int64 { return &q.retentionS }},
	{"ReceiveMessageWaitTimeSeconds", 0, waitMaxS, func(q *queue, _ *fsm.TypeSettings) *int64 { return &q.waitS }},
}

// choice is an attribute of two values, perhaps of FIFO queues alone.
type choice struct {
	name, yes, no string
	fifo          bool
	of            func(q *queue) *bool
}

var choices = []choice{
	{"SqsManagedSseEnabled", "true", "false", false, func(q *queue) *bool { return &q.encrypted }},
	{"ContentBasedDeduplication", "true", "false", true, func(q *queue) *bool { return &q.byContent }},
	{"DeduplicationScope", "messageGroup", "queue", true, func(q *queue) *bool { return &q.perGroup }},
	{"FifoThroughputLimit", "perMessageGroupId", "perQueue", true, func(q *queue) *bool { return &q.highThroughput }},
}

// VisibilityTimeout and DelaySeconds are the lease of the type and its delay.
const (
	delayName         = "DelaySeconds"
	visibilityName    = "VisibilityTimeout"
	visibilityDefault = 30
	fifoName          = "FifoQueue"
)

// leaseOf returns a visibility timeout as a lease. A lease is never 0: that would stand for the default.
func leaseOf(seconds int64) int64 { return max(seconds*1_000, leaseMin) }

// leaseMin is the shortest lease in milliseconds, which stands for a visibility timeout of 0.
const leaseMin = 100

func (q *queue) set(s *fsm.TypeSettings, attributes []Pair) *Error {
	for _, a := range attributes {
		if bad := q.setOne(s, a); bad != nil {
			return bad
		}
	}
	return nil
}

func (q *queue) setOne(s *fsm.TypeSettings, a Pair) *Error {
	n, err := strconv.ParseInt(a.Value, 10, 64)
	for i := range numbers {
		if k := &numbers[i]; k.name == a.Name {
			if err != nil || n < k.least || n > k.most {
				return badAttribute(a.Name)
			}
			*k.of(q, s) = n
			return nil
		}
	}
	switch a.Name {
	case delayName:
		if err != nil || n < 0 || n > delayMaxS {
			return badAttribute(a.Name)
		}
		s.DelayMS = n * 1_000
		return nil
	case visibilityName:
		if err != nil || n < 0 || n > visibilityMaxS {
			return badAttribute(a.Name)
		}
		s.LeaseMS = leaseOf(n)
		return nil
	case fifoName:
		if q.fifo && a.Value == "true" {
			return nil
		}
		return badAttribute(a.Name)
	case redriveName:
		return setRedrive(s, a.Value)
	case allowName:
		return q.allow.set(a.Value)
	case "Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds":
		if a.Value == "" { // removing it changes nothing, because it cannot be set
			return nil
		}
		return Unsupported("The attribute " + a.Name + " is not supported by this endpoint.")
	}
	for _, c := range choices {
		switch {
		case c.name != a.Name || c.fifo && !q.fifo:
		case a.Value == c.yes || a.Value == c.no:
			*c.of(q) = a.Value == c.yes
			return nil
		default:
			return badAttribute(a.Name)
		}
	}
	return unknownAttribute(a.Name)
}

// all returns the attributes of a queue, sorted by name.
func (q *queue) all(s *fsm.TypeSettings, counts *[fsm.StatusCancelled + 1]int64, name string, arn func(queue string) string) []Pair {
	number := func(name string, n int64) Pair { return Pair{name, strconv.FormatInt(n, 10)} }
	pairs := []Pair{
		number("ApproximateNumberOfMessages", counts[fsm.StatusPending]),
		number("ApproximateNumberOfMessagesDelayed", counts[fsm.StatusScheduled]),
		number("ApproximateNumberOfMessagesNotVisible", counts[fsm.StatusClaimed]),
		number("CreatedTimestamp", q.created),
		number(delayName, s.DelayMS/1_000),
		number("LastModifiedTimestamp", q.modified),
		{"QueueArn", arn(name)},
		number(visibilityName, s.LeaseMS/1_000),
	}
	for i := range numbers {
		pairs = append(pairs, number(numbers[i].name, *numbers[i].of(q, s)))
	}
	if q.fifo {
		pairs = append(pairs, Pair{fifoName, "true"})
	}
	for _, c := range choices {
		switch {
		case c.fifo && !q.fifo:
		case *c.of(q):
			pairs = append(pairs, Pair{c.name, c.yes})
		default:
			pairs = append(pairs, Pair{c.name, c.no})
		}
	}
	if s.DeadLetter != "" {
		pairs = append(pairs, Pair{redriveName, redriveOf(s, arn)})
	}
	if q.allow.permission != "" {
		pairs = append(pairs, Pair{allowName, q.allow.json(arn)})
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	return pairs
}

// unset are attributes of the model that a queue need not have, or never has here. It is not an error to ask for them.
var unset = []string{
	"Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", redriveName, allowName,
	fifoName, "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit",
}

// asked returns those of all that are asked for.
func asked(all []Pair, names []string) (pairs []Pair, bad *Error) {
	want := map[string]bool{}
	for _, name := range names {
		if name == "All" {
			return all, nil
		}
		known := slices.ContainsFunc(all, func(p Pair) bool { return p.Name == name }) || slices.Contains(unset, name)
		if !known {
			return nil, unknownAttribute(name)
		}
		want[name] = true
	}
	for _, p := range all {
		if want[p.Name] {
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}
