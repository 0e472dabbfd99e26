package sqs

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claimq/claimq/api/sqs/shape"
)

// Call is a request with its parameters, the same for both forms. What a request may leave out has a field that says
// whether it is there.
type Call struct {
	Head
	Queue string // "" if the operation names none

	Attributes   []Pair   // of a queue
	Names        []string // of attributes that are asked for, of queues or as system attributes
	MessageNames []string // of message attributes that are asked for
	Tags         []Pair
	TagKeys      []string

	Prefix, NextToken string
	MaxResults        Int

	// Of a move: the queue to move messages to, "" = the one that each came from; messages per second; the number in
	// the move's handle.
	Destination string
	Rate        Int
	Number      uint64

	MaxMessages, Wait, Visibility Int
	AttemptID                     string // ReceiveRequestAttemptId

	Entries []Entry // of a batch; one for other calls about messages

	// Repeat identifies the call: it is the same for each try, and different for every other call. "": the client does
	// not say whether a request repeats an earlier one.
	Repeat string
}

// RepeatOf returns Call.Repeat: a hash of the caller, of the invocation id that SDKs send with each try of a call, and
// of the operation and the body. If a client uses an id again for another request, that does not count as a repeat.
func RepeatOf(caller, invocation string, op Op, body [sha256.Size]byte) string {
	sum := sha256.Sum256(append([]byte(caller+"\x00"+invocation+"\x00"+op.String()+"\x00"), body[:]...))
	return "sqs-" + base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Pair is a name and a value.
type Pair struct{ Name, Value string }

// Int is a number that may be left out.
type Int struct {
	Set bool
	N   int64
}

// Or returns the number, or n if it was left out.
func (i Int) Or(n int64) int64 {
	if i.Set {
		return i.N
	}
	return n
}

// Entry is a message that a call is about.
type Entry struct {
	ID         string // within a batch
	Body       string
	Delay      Int
	Attributes []Attribute // sorted by name
	System     []Attribute
	Group      string
	Dedup      string
	Handle     string
	Visibility Int
	Bad        *Error // it alone is refused
}

// Bounds of a call.
const (
	entriesMax     = 10
	batchBytes     = 1 << 20 // bodies and attributes of a batch, and of a message
	visibilityMaxS = 43_200
	waitMaxS       = 20
	delayMaxS      = 900
	tokenMax       = 128 // of MessageGroupId, MessageDeduplicationId and ReceiveRequestAttemptId
	tagsMax        = 50
	tagKeyMax      = 128 // characters
	tagValueMax    = 256 // characters
	namesMax       = 200 // of names that are asked for, and of attributes of a queue
)

// Decode reads the parameters of a request. query is its query string, which Query may use in place of a body.
func Decode(h Head, query string, body []byte) (*Call, *Error) {
	if h.Bad != nil {
		return nil, h.Bad
	}
	d := decoder{query: h.Query}
	var c *Call
	switch {
	case !h.Query:
		d.unread(shape.ReadJSON(body, func(v *shape.Value) { c = d.call(h, v) }))
	case len(body) == 0:
		c = d.form(h, []byte(query))
	default:
		c = d.form(h, body)
	}
	if d.bad != nil {
		return nil, d.bad
	}
	return c, nil
}

func (d *decoder) form(h Head, form []byte) *Call {
	params, err := shape.ReadForm(form)
	if err != nil {
		d.unread(err)
		return nil
	}
	return d.call(h, &params)
}

// decoder reads the parameters of a call, and keeps the first mistake.
type decoder struct {
	query bool
	bad   *Error
}

func (d *decoder) refuse(e *Error) {
	if d.bad == nil {
		d.bad = e // which may be nil
	}
}

func (d *decoder) unread(err error) {
	if err != nil {
		d.refuse(malformed(err.Error()))
	}
}

func (d *decoder) call(h Head, v *shape.Value) *Call {
	op := &operations[h.Op]
	c := &Call{Head: h}
	switch {
	case h.Op == CreateQueue || h.Op == GetQueueURL:
		if c.Queue = d.text(v, "QueueName"); c.Queue == "" {
			d.refuse(missing("QueueName"))
		} else if !validQueueName(c.Queue) {
			d.refuse(invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"))
		}
	case !op.noQueue:
		if c.Queue = queueOfURL(d.text(v, "QueueUrl")); c.Queue == "" {
			c.Queue = h.InPath
		}
		if c.Queue == "" {
			d.refuse(missing("QueueUrl"))
		} else if !validQueueName(c.Queue) {
			d.refuse(noQueue(h.Query))
		}
	}
	switch h.Op {
	case CreateQueue, SetQueueAttributes:
		c.Attributes = d.pairs(v, namesMax, "Attributes")
		c.Tags = d.tags(v, c.Queue)
	case TagQueue:
		if c.Tags = d.tags(v, c.Queue); len(c.Tags) == 0 {
			d.refuse(missing("Tags"))
		}
	case UntagQueue:
		if c.TagKeys = d.texts(v, tagsMax, "TagKeys"); len(c.TagKeys) == 0 {
			d.refuse(missing("TagKeys"))
		}
	case GetQueueAttributes:
		c.Names = d.texts(v, namesMax, "AttributeNames")
	case ListQueues, ListDeadLetterSourceQueues:
		c.Prefix, c.NextToken = d.text(v, "QueueNamePrefix"), d.text(v, "NextToken")
		c.MaxResults = d.integer(v, "MaxResults", 1, 1_000, "Must be between 1 and 1000, if provided.")
	case ReceiveMessage:
		d.receive(c, v)
	case StartMessageMoveTask, ListMessageMoveTasks, CancelMessageMoveTask:
		d.move(c, v)
	default:
		d.messages(c, v)
	}
	c.Queue = strings.Clone(c.Queue) // it becomes a part of commands
	return c
}

// move reads what a call says of a move.
func (d *decoder) move(c *Call, v *shape.Value) {
	if c.Op == CancelMessageMoveTask {
		handle := d.text(v, "TaskHandle")
		if c.Queue, c.Number = readMoveHandle(handle); handle == "" {
			d.refuse(missing("TaskHandle"))
		} else if c.Number == 0 {
			d.refuse(badValue("TaskHandle", handle, "It is no handle of a message move task."))
		}
		return
	}
	c.Queue = d.arn(v, "SourceArn")
	if c.Queue == "" {
		d.refuse(missing("SourceArn"))
	}
	if c.Op == StartMessageMoveTask {
		c.Destination = strings.Clone(d.arn(v, "DestinationArn"))
		c.Rate = d.integer(v, "MaxNumberOfMessagesPerSecond", 1, rateMax, "Must be between 1 and 500, if provided.")
		return
	}
	d.integer(v, "MaxResults", 1, entriesMax, "Must be between 1 and 10, if provided.") // there is one at most
}

// arn reads the name of a queue in an ARN; "" without one.
func (d *decoder) arn(v *shape.Value, name string) (queue string) {
	arn := d.text(v, name)
	if queue = queueOfARN(arn); queue == "" && arn != "" {
		d.refuse(noResource(name))
	}
	return queue
}

func (d *decoder) receive(c *Call, v *shape.Value) {
	c.Names = append(d.texts(v, namesMax, "AttributeNames"), d.texts(v, namesMax, "MessageSystemAttributeNames")...)
	c.MessageNames = d.texts(v, namesMax, "MessageAttributeNames")
	c.MaxMessages = d.integer(v, "MaxNumberOfMessages", 1, entriesMax, "Must be between 1 and 10, if provided.")
	c.Wait = d.integer(v, "WaitTimeSeconds", 0, waitMaxS, "Must be >= 0 and <= 20, if provided.")
	c.Visibility = d.visibility(v)
	c.AttemptID = d.token(v, "ReceiveRequestAttemptId")
}

func (d *decoder) visibility(v *shape.Value) Int {
	return d.integer(v, "VisibilityTimeout", 0, visibilityMaxS, "Must be between 0 and 43200, if provided.")
}

// messages reads what a call says of one message, or of each of a batch.
func (d *decoder) messages(c *Call, v *shape.Value) {
	op := &operations[c.Op]
	switch {
	case op.entry:
		c.Entries = make([]Entry, 1)
		d.entry(c.Op, v, &c.Entries[0])
		d.refuse(c.Entries[0].Bad)
	case op.batch:
		d.batch(c, v)
	}
}

func (d *decoder) batch(c *Call, v *shape.Value) {
	items := d.list(v, shape.ValuesMax, "Entries")
	switch n := len(items); {
	case n == 0:
		d.refuse(simpleQueue("EmptyBatchRequest", "There should be at least one "+c.Op.String()+"RequestEntry in the request."))
		return
	case n > entriesMax:
		d.refuse(simpleQueue("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent "+strconv.Itoa(n)+"."))
		return
	}
	c.Entries = make([]Entry, len(items))
	for i := range items {
		id := d.text(&items[i], "Id")
		switch {
		case !validEntryID(id):
			d.refuse(simpleQueue("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."))
			return
		case c.hasEntry(id, i):
			d.refuse(simpleQueue("BatchEntryIdsNotDistinct", "Id "+id+" repeated."))
			return
		}
		c.Entries[i].ID = id
		d.entry(c.Op, &items[i], &c.Entries[i])
	}
	if c.Op != SendMessageBatch {
		return
	}
	size := 0
	for i := range c.Entries {
		size += c.Entries[i].size()
	}
	if size > batchBytes {
		d.refuse(simpleQueue("BatchRequestTooLong", "Batch requests cannot be longer than "+strconv.Itoa(batchBytes)+" bytes. You have sent "+strconv.Itoa(size)+" bytes."))
	}
}

// bodyBytes is the size of the bodies of all entries.
func (c *Call) bodyBytes() (n int) {
	for i := range c.Entries {
		n += len(c.Entries[i].Body)
	}
	return n
}

// hasEntry reports whether one of the first n entries has the id.
func (c *Call) hasEntry(id string, n int) bool {
	for i := range n {
		if c.Entries[i].ID == id {
			return true
		}
	}
	return false
}

func validEntryID(id string) bool {
	for i := range len(id) {
		if c := id[i]; !letterOrDigit(c) && c != '-' && c != '_' {
			return false
		}
	}
	return id != "" && len(id) <= 80
}

// entry reads what a call says of a message. What is wrong with it is kept in it, so that other entries of the batch are
// done; only a request that cannot be read fails as a whole.
func (d *decoder) entry(op Op, v *shape.Value, e *Entry) {
	of := decoder{query: d.query}
	switch op {
	case SendMessage, SendMessageBatch:
		of.message(e, v)
	case DeleteMessage, DeleteMessageBatch:
		of.handle(e, v)
	case ChangeMessageVisibility, ChangeMessageVisibilityBatch:
		of.handle(e, v)
		if e.Visibility = of.visibility(v); !e.Visibility.Set {
			of.refuse(missing("VisibilityTimeout"))
		}
	}
	if of.bad != nil && of.bad.Shape == serialization {
		d.refuse(of.bad)
	}
	e.Bad = of.bad
}

func (d *decoder) handle(e *Entry, v *shape.Value) {
	if e.Handle = d.text(v, "ReceiptHandle"); e.Handle == "" {
		d.refuse(missing("ReceiptHandle"))
	}
}

// size returns the bytes that count for the bounds of a message.
func (e *Entry) size() int {
	n := len(e.Body)
	for i := range e.Attributes {
		a := &e.Attributes[i]
		n += len(a.Name) + len(a.Type) + len(a.Value)
	}
	return n
}

func (d *decoder) message(e *Entry, v *shape.Value) {
	e.Body = d.text(v, "MessageBody")
	e.Delay = d.integer(v, "DelaySeconds", 0, delayMaxS, "DelaySeconds must be >= 0 and <= 900.")
	e.Attributes = d.attributes(v, "MessageAttributes", false)
	e.System = d.attributes(v, "MessageSystemAttributes", true)
	e.Group, e.Dedup = d.token(v, "MessageGroupId"), d.token(v, "MessageDeduplicationId")
	switch {
	case e.Body == "":
		d.refuse(missing("MessageBody"))
	case !validXML(e.Body):
		d.refuse(badContents())
	case e.size() > batchBytes:
		d.refuse(tooLong(batchBytes))
	}
}

func tooLong(most int64) *Error {
	return invalidParameter("One or more parameters are invalid. Reason: Message must be shorter than " + strconv.FormatInt(most, 10) + " bytes.")
}

func badContents() *Error {
	return plain("InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
}

// token reads an id that the client makes: up to 128 letters, digits and punctuation marks.
func (d *decoder) token(v *shape.Value, name string) string {
	s := d.text(v, name)
	if len(s) > tokenMax || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		d.refuse(badValue(name, s, name+" can only include alphanumeric and punctuation characters. 1 to 128 in length."))
	}
	return s
}

// serialization is the shape of the error for what cannot be read.
const serialization = "SerializationException"

func (d *decoder) text(v *shape.Value, name string) string {
	s, ok := v.Member(name).Scalar()
	if !ok {
		d.refuse(malformed(name + " must be a text."))
	}
	return s
}

func (d *decoder) integer(v *shape.Value, name string, least, most int64, reason string) (i Int) {
	m := v.Member(name)
	s, ok := m.Scalar()
	switch {
	case !ok:
		d.refuse(malformed(name + " must be an integer."))
		return i
	case m.Kind == shape.None:
		return i
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil && !isDigits(s):
		d.refuse(malformed(name + " must be an integer."))
	case err != nil, n < least, n > most:
		d.refuse(badValue(name, s, reason))
	default:
		i = Int{true, n}
	}
	return i
}

// isDigits reports whether s is an integer, of any size.
func isDigits(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// list reads a list of at most limit elements.
func (d *decoder) list(v *shape.Value, limit int, name string) []shape.Value {
	m := v.Member(name)
	switch {
	case m.Kind == shape.None, d.query && m.Kind == shape.Text && m.Text == "": // an empty list, as some clients write it
		return nil
	case m.Kind != shape.List:
		d.refuse(malformed(name + " must be a list."))
		return nil
	case len(m.Items) > limit:
		d.refuse(malformed(name + " has more than " + strconv.Itoa(limit) + " elements."))
		return nil
	}
	return m.Items
}

func (d *decoder) texts(v *shape.Value, limit int, name string) []string {
	items := d.list(v, limit, name)
	texts := make([]string, 0, len(items))
	for i := range items {
		s, ok := items[i].Scalar()
		if !ok || items[i].Kind == shape.None {
			d.refuse(malformed("An element of " + name + " is no text."))
		}
		texts = append(texts, s)
	}
	return texts
}

// pairs reads a map of texts, sorted by name.
func (d *decoder) pairs(v *shape.Value, limit int, names ...string) []Pair {
	m := v.Member(names...)
	switch {
	case m.Kind == shape.None, d.query && m.Kind == shape.Text && m.Text == "":
		return nil
	case m.Kind != shape.Object:
		d.refuse(malformed(names[0] + " must be a map."))
		return nil
	case len(m.Items) > limit:
		d.refuse(malformed(names[0] + " has more than " + strconv.Itoa(limit) + " members."))
		return nil
	}
	pairs := make([]Pair, 0, len(m.Items))
	for i := range m.Items {
		s, ok := m.Items[i].Scalar()
		if !ok {
			d.refuse(malformed("The value of " + shape.Shorten(m.Items[i].Name) + " is no text."))
		}
		pairs = append(pairs, Pair{m.Items[i].Name, s})
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(pairs); i++ {
		d.once(pairs[i-1].Name, pairs[i].Name)
	}
	return pairs
}

// tags reads the tags of a queue. boto3 cannot read the answer about a tag without a key.
func (d *decoder) tags(v *shape.Value, queue string) []Pair {
	tags := d.pairs(v, namesMax, "Tags", "tags")
	if len(tags) > tagsMax {
		d.refuse(tooManyTags(queue))
	}
	for _, t := range tags {
		switch {
		case t.Name == "" || utf8.RuneCountInString(t.Name) > tagKeyMax:
			d.refuse(invalidParameter("Tag keys must be between 1 and " + strconv.Itoa(tagKeyMax) + " characters in length."))
		case utf8.RuneCountInString(t.Value) > tagValueMax:
			d.refuse(invalidParameter("Tag values must be between 0 and " + strconv.Itoa(tagValueMax) + " characters in length."))
		case !validXML(t.Name) || !validXML(t.Value):
			d.refuse(invalidParameter("The tag " + shape.Shorten(t.Name) + " has a character that XML cannot carry."))
		}
	}
	return tags
}

func tooManyTags(queue string) *Error {
	return invalidParameter("Too many tags added for queue " + shape.Shorten(queue) + ".")
}

// once refuses a name of a map that is there twice.
func (d *decoder) once(name, next string) {
	if name == next {
		d.refuse(malformed("The name " + shape.Shorten(name) + " is there twice."))
	}
}
