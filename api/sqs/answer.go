package sqs

import (
	"crypto/md5"
	"encoding/base64"

	"github.com/claimq/claimq/fsm"
)

// Answer is the result of a call, the same for both forms. Only the fields that the operation's answer has in the model
// are written, and empty ones are left out, because clients misread an empty map.
type Answer struct {
	QueueURL   string
	QueueURLs  []string
	NextToken  string
	Attributes []Pair // of a queue
	Tags       []Pair
	Messages   []Message
	Done       []Done // what was done to each entry, in order

	Move                                  *fsm.Move
	TaskHandle, SourceARN, DestinationARN string // of the move
}

// Message is a message as it is received.
type Message struct {
	ID, Handle string
	Body       []byte
	System     []Pair
	Attributes []Attribute // those that were asked for
}

// Done is the result of one entry.
type Done struct {
	ID  string // of the entry
	Bad *Error // nil: it was done

	// Of a message that was sent:
	MessageID, AttributesMD5, SystemMD5, Sequence string
	BodyMD5                                       [md5.Size]byte
}

// Types of the bodies of answers.
const (
	TypeJSON = "application/x-amz-json-1.0"
	TypeXML  = "text/xml"
)

// ContentType returns the type of answers to the request.
func (h *Head) ContentType() string {
	if h.Query {
		return TypeXML
	}
	return TypeJSON
}

// namespace is the XML namespace of all answers.
const namespace = "http://queue.amazonaws.com/doc/2012-11-05/"

// The room for an answer in addition to what was sent, and for each entry or message.
const (
	answerRoom = 512
	entryRoom  = 256
)

// Room estimates the size of the answer in bytes. It must not be far too high, because buffers above a certain size are
// not reused.
func (a *Answer) Room() int {
	n := answerRoom + entryRoom*(len(a.Done)+len(a.Messages))
	for i := range a.Messages {
		m := &a.Messages[i]
		n += len(m.Body) + len(m.Body)/16 + len(m.Handle) // some of it is escaped
		for k := range m.Attributes {
			n += entryRoom + len(m.Attributes[k].Value)/3*4
		}
	}
	return n
}

// Append appends the answer to a call.
func (a *Answer) Append(b []byte, h *Head, requestID []byte) []byte {
	w := writer{b: b, xml: h.Query}
	name := h.Op.String()
	if !h.Query {
		w.b = append(w.b, '{')
		a.fields(&w, h.Op)
		return append(w.b, '}')
	}
	w.b = append(append(append(append(append(w.b, `<?xml version="1.0"?><`...), name...), `Response xmlns="`...), namespace...), `">`...)
	if !operations[h.Op].noResult {
		w.open(name + "Result")
		a.fields(&w, h.Op)
		w.end(name + "Result")
	}
	w.open("ResponseMetadata")
	w.text("RequestId", string(requestID))
	w.end("ResponseMetadata")
	w.end(name + "Response")
	return w.b
}

// fields writes what the answer of op has.
func (a *Answer) fields(w *writer, op Op) {
	switch op {
	case CreateQueue, GetQueueURL:
		w.text("QueueUrl", a.QueueURL)
	case ListQueues:
		w.texts("QueueUrls", "QueueUrl", a.QueueURLs)
		w.text("NextToken", a.NextToken)
	case ListDeadLetterSourceQueues:
		w.texts("queueUrls", "QueueUrl", a.QueueURLs)
		w.text("NextToken", a.NextToken)
	case GetQueueAttributes:
		w.pairs("Attributes", "Attribute", "Name", a.Attributes)
	case ListQueueTags:
		w.pairs("Tags", "Tag", "Key", a.Tags)
	case ReceiveMessage:
		if len(a.Messages) > 0 {
			w.list("Messages", "Message", len(a.Messages), func(i int) { a.Messages[i].write(w) })
		}
	case StartMessageMoveTask:
		w.text("TaskHandle", a.TaskHandle)
	case ListMessageMoveTasks:
		if a.Move != nil {
			w.list("Results", "ListMessageMoveTasksResultEntry", 1, func(int) { a.writeMove(w) })
		}
	case CancelMessageMoveTask:
		w.number("ApproximateNumberOfMessagesMoved", a.Move.Moved)
	case SendMessage:
		for i := range a.Done {
			a.Done[i].sent(w)
		}
	case SendMessageBatch, DeleteMessageBatch, ChangeMessageVisibilityBatch:
		a.batch(w, op)
	}
}

func (m *Message) write(w *writer) {
	w.word("MessageId", m.ID)
	w.word("ReceiptHandle", m.Handle)
	w.sum("MD5OfBody", md5.Sum(m.Body))
	write(w, "Body", m.Body)
	w.pairs("Attributes", "Attribute", "Name", m.System)
	if len(m.Attributes) == 0 {
		return
	}
	w.word("MD5OfMessageAttributes", md5OfAttributes(m.Attributes))
	if w.xml {
		for i := range m.Attributes {
			w.open("MessageAttribute")
			w.text("Name", m.Attributes[i].Name)
			w.open("Value")
			m.Attributes[i].write(w)
			w.end("Value")
			w.end("MessageAttribute")
		}
		return
	}
	w.object("MessageAttributes", func() {
		for i := range m.Attributes {
			w.object(m.Attributes[i].Name, func() { m.Attributes[i].write(w) })
		}
	})
}

func (a *Attribute) write(w *writer) {
	if a.Binary() {
		w.text("BinaryValue", base64.StdEncoding.EncodeToString(a.Value))
	} else {
		write(w, "StringValue", a.Value)
	}
	w.text("DataType", a.Type)
}

func (d *Done) sent(w *writer) {
	w.sum("MD5OfMessageBody", d.BodyMD5)
	w.word("MD5OfMessageAttributes", d.AttributesMD5)
	w.word("MD5OfMessageSystemAttributes", d.SystemMD5)
	w.word("MessageId", d.MessageID)
	w.word("SequenceNumber", d.Sequence)
}

// batch writes what was done and what was not. In JSON both lists are there even if they are empty.
func (a *Answer) batch(w *writer, op Op) {
	done := make([]*Done, 0, len(a.Done))
	var failed []*Done
	for i := range a.Done {
		if d := &a.Done[i]; d.Bad == nil {
			done = append(done, d)
		} else {
			failed = append(failed, d)
		}
	}
	w.list("Successful", op.String()+"ResultEntry", len(done), func(i int) {
		w.word("Id", done[i].ID)
		if op == SendMessageBatch {
			done[i].sent(w)
		}
	})
	w.list("Failed", "BatchResultErrorEntry", len(failed), func(i int) {
		d := failed[i]
		w.word("Id", d.ID)
		w.boolean("SenderFault", d.Bad.Status < 500)
		w.text("Code", d.Bad.code())
		w.text("Message", d.Bad.Text)
	})
}

// Append appends the error, as the body of an answer.
func (e *Error) Append(b []byte, query bool, requestID []byte) []byte {
	w := writer{b: b, xml: query}
	if !query {
		w.b = append(w.b, '{')
		w.text("__type", e.space()+"#"+e.Shape)
		w.text("message", e.Text)
		return append(w.b, '}')
	}
	w.b = append(append(append(w.b, `<?xml version="1.0"?><ErrorResponse xmlns="`...), namespace...), `">`...)
	w.open("Error")
	w.text("Type", e.fault())
	w.text("Code", e.code())
	w.text("Message", e.Text)
	w.b = append(w.b, `<Detail/>`...)
	w.end("Error")
	w.text("RequestId", string(requestID))
	w.end("ErrorResponse")
	return w.b
}

// space returns the namespace of the shape.
func (e *Error) space() string {
	switch e.Shape {
	case "InvalidParameterValueException", "MissingRequiredParameterException", serialization, "UnknownOperationException",
		"UnrecognizedClientException", "AccessDeniedException", "InvalidSignatureException", "MissingAuthenticationTokenException":
		return "com.amazon.coral.service"
	}
	return "com.amazonaws.sqs"
}

// QueryError returns the header x-amzn-query-error, from which clients of JSON take the code.
func (e *Error) QueryError() string { return e.code() + ";" + e.fault() }
