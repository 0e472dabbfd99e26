package sqs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/sqs/shape"
)

// both are the same request in either form.
type both struct {
	name, op   string
	json, form string
}

var requests = []both{
	{
		"send with attributes", "SendMessage",
		`{"QueueUrl":"http://h/000000000000/q","MessageBody":"a \"b\"\n\u20ac\ud83d\ude00","DelaySeconds":5,"MessageAttributes":{"n":{"DataType":"Number.int","StringValue":"1"},"b":{"DataType":"Binary","BinaryValue":"AAE="}},"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"Root=1"}}}`,
		`QueueUrl=http%3A%2F%2Fh%2F000000000000%2Fq&MessageBody=a+%22b%22%0A%E2%82%AC%F0%9F%98%80&DelaySeconds=5&MessageAttribute.2.Name=n&MessageAttribute.2.Value.DataType=Number.int&MessageAttribute.2.Value.StringValue=1&MessageAttribute.1.Name=b&MessageAttribute.1.Value.DataType=Binary&MessageAttribute.1.Value.BinaryValue=AAE%3D&MessageSystemAttribute.1.Name=AWSTraceHeader&MessageSystemAttribute.1.Value.DataType=String&MessageSystemAttribute.1.Value.StringValue=Root%3D1`,
	},
	{
		"send a batch", "SendMessageBatch",
		`{"QueueUrl":"/0/q","Entries":[{"Id":"a","MessageBody":"1"},{"Id":"b","MessageBody":"","DelaySeconds":"3"}]}`,
		`QueueUrl=/0/q&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=1&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=&SendMessageBatchRequestEntry.2.DelaySeconds=3`,
	},
	{
		"receive", "ReceiveMessage",
		`{"QueueUrl":"/0/q","MaxNumberOfMessages":"5","WaitTimeSeconds":20,"VisibilityTimeout":0,"AttributeNames":["All"],"MessageSystemAttributeNames":[],"MessageAttributeNames":["a.*"]}`,
		`QueueUrl=/0/q&MaxNumberOfMessages=5&WaitTimeSeconds=20&VisibilityTimeout=0&AttributeName.1=All&MessageAttributeName.1=a.%2A`,
	},
	{
		"create", "CreateQueue",
		`{"QueueName":"q","Attributes":{"VisibilityTimeout":30,"FifoQueue":true},"tags":{"k":"v"}}`,
		`QueueName=q&Attribute.1.Name=VisibilityTimeout&Attribute.1.Value=30&Attribute.2.Name=FifoQueue&Attribute.2.Value=true&Tag.1.Key=k&Tag.1.Value=v`,
	},
	{"tag", "TagQueue", `{"QueueUrl":"/0/q","Tags":{"k":"v","a":""}}`, `QueueUrl=/0/q&Tag.1.Key=k&Tag.1.Value=v&Tag.2.Key=a&Tag.2.Value=`},
	{"untag", "UntagQueue", `{"QueueUrl":"/0/q","TagKeys":["k"]}`, `QueueUrl=/0/q&TagKey.1=k`},
	{"delete", "DeleteMessage", `{"QueueUrl":"/0/q","ReceiptHandle":"h"}`, `QueueUrl=/0/q&ReceiptHandle=h`},
	{
		"visibility of a batch", "ChangeMessageVisibilityBatch",
		`{"QueueUrl":"/0/q","Entries":[{"Id":"1","ReceiptHandle":"h","VisibilityTimeout":0}]}`,
		`QueueUrl=/0/q&ChangeMessageVisibilityBatchRequestEntry.1.Id=1&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=h&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=0`,
	},
	{"list", "ListQueues", `{"QueueNamePrefix":"a","MaxResults":3,"NextToken":"t","Unknown":[{"a":null}]}`, `QueueNamePrefix=a&MaxResults=3&NextToken=t`},
	{"attributes", "GetQueueAttributes", `{"QueueUrl":"/0/q","AttributeNames":["All"]}`, `QueueUrl=/0/q&AttributeName.1=All`},
}

func jsonCall(t *testing.T, op, body string) (*Call, *Error) {
	t.Helper()
	h, ok := HeadOf("POST", "/", "", "AmazonSQS."+op, []byte(body))
	if !ok {
		t.Fatalf("%s is no request of SQS", op)
	}
	return Decode(h, "", []byte(body))
}

func formCall(t *testing.T, op, form string) (*Call, *Error) {
	t.Helper()
	body := "Action=" + op + "&Version=2012-11-05&" + form
	h, ok := HeadOf("POST", "/", "", "AmazonSQSv20121105."+op, []byte(body))
	if !ok {
		t.Fatalf("%s is no request of SQS", op)
	}
	return Decode(h, "", []byte(body))
}

// A request means the same in both forms.
func TestDecode_bothForms(t *testing.T) {
	t.Parallel()
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			a, bad := jsonCall(t, r.op, r.json)
			if bad != nil {
				t.Fatal(bad)
			}
			b, bad := formCall(t, r.op, r.form)
			if bad != nil {
				t.Fatal(bad)
			}
			if a.Op.String() != r.op || a.Query || !b.Query {
				t.Errorf("operation %v, query %v and %v", a.Op, a.Query, b.Query)
			}
			b.Query = false
			for i := range a.Entries { // lists that are left out and empty ones mean the same
				a.Entries[i].Bad, b.Entries[i].Bad = textOf(a.Entries[i].Bad), textOf(b.Entries[i].Bad)
			}
			if !reflect.DeepEqual(*a, *b) {
				t.Errorf("as JSON %+v\nas a form %+v", *a, *b)
			}
		})
	}
}

// textOf keeps of an error only what both forms have in common.
func textOf(e *Error) *Error {
	if e == nil {
		return nil
	}
	return &Error{Text: e.Text}
}

// The values are those that were sent.
func TestDecode_values(t *testing.T) {
	t.Parallel()
	c, bad := jsonCall(t, "SendMessage", requests[0].json)
	if bad != nil {
		t.Fatal(bad)
	}
	e := c.Entries[0]
	want := []Attribute{{"b", "Binary", []byte{0, 1}}, {"n", "Number.int", []byte("1")}}
	if c.Queue != "q" || e.Body != "a \"b\"\n€😀" || e.Delay != (Int{true, 5}) || !reflect.DeepEqual(e.Attributes, want) || e.System[0].Name != traceHeader {
		t.Errorf("%+v", c)
	}
	c, bad = jsonCall(t, "ReceiveMessage", requests[2].json)
	if bad != nil {
		t.Fatal(bad)
	}
	if c.MaxMessages != (Int{true, 5}) || c.Visibility != (Int{true, 0}) || c.Wait.N != 20 || c.Names[0] != "All" {
		t.Errorf("%+v", c)
	}
}

func TestHeadOf(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, method, path, query, target, body string
		ok, form                                bool
		op                                      Op
	}{
		{"JSON", "POST", "/", "", "AmazonSQS.ListQueues", "{}", true, false, ListQueues},
		{"a form", "POST", "/", "", "", "Action=ListQueues", true, true, ListQueues},
		{"a form with the target of an old client", "POST", "/", "", "AmazonSQSv20121105.SendMessage", "Version=1&Action=SendMessage", true, true, SendMessage},
		{"the path of a queue", "POST", "/000000000000/a.fifo", "", "", "Action=SendMessage", true, true, SendMessage},
		{"a GET with an action", "GET", "/1/q", "Action=DeleteMessage", "", "", true, true, DeleteMessage},
		{"a GET without", "GET", "/", "", "", "", false, false, 0},
		{"a GET with a target", "GET", "/", "", "AmazonSQS.ListQueues", "", false, false, 0},
		{"a path of the API", "POST", "/api/tasks", "", "AmazonSQS.ListQueues", "{}", false, false, 0},
		{"another method", "PUT", "/", "", "AmazonSQS.ListQueues", "{}", false, false, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			h, ok := HeadOf(x.method, x.path, x.query, x.target, []byte(x.body))
			if ok != x.ok || ok && (h.Op != x.op || h.Query != x.form || h.Bad != nil) {
				t.Errorf("%v, %+v", ok, h)
			}
		})
	}
}

// The queue of a request in Query may be in its path.
func TestDecode_queueInPath(t *testing.T) {
	t.Parallel()
	h, _ := HeadOf("GET", "/000000000000/mail", "Action=PurgeQueue", "", nil)
	c, bad := Decode(h, "Action=PurgeQueue", nil)
	if bad != nil || c.Queue != "mail" {
		t.Errorf("%+v, %v", c, bad)
	}
}

// What is wrong with a request is told by an error of the model, with its status and code.
func TestDecode_refused(t *testing.T) {
	t.Parallel()
	entries := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"Id":"a","MessageBody":"1"},`, n), ",")
	}
	big := strings.Repeat("x", batchBytes/2)
	for _, x := range []struct {
		name, op, json, shape, code, text string
	}{
		{"no JSON", "SendMessage", `{"QueueUrl":`, "SerializationException", "SerializationException", "not valid JSON"},
		{"more after the end", "ListQueues", `{} {}`, "SerializationException", "SerializationException", "more after its end"},
		{"a list", "ListQueues", `[]`, "SerializationException", "SerializationException", "no object"},
		{"deep", "ListQueues", `{"a":` + strings.Repeat("[", 20), "SerializationException", "SerializationException", "levels"},
		{"many values", "ListQueues", `{"a":[` + strings.Repeat("1,", shape.ValuesMax) + `1]}`, "SerializationException", "SerializationException", "too many values"},
		{"half a pair", "ListQueues", `{"a":"\ud800"}`, "SerializationException", "SerializationException", "surrogate"},
		{"invalid UTF-8", "ListQueues", "{\"a\":\"\xff\"}", "SerializationException", "SerializationException", "UTF-8"},
		{"no queue", "SendMessage", `{"MessageBody":"x"}`, "MissingRequiredParameterException", "MissingParameter", "The request must contain the parameter QueueUrl."},
		{"a queue that cannot be", "SendMessage", `{"QueueUrl":"/0/a b","MessageBody":"x"}`, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist."},
		{"a long name", "CreateQueue", `{"QueueName":"` + strings.Repeat("a", 81) + `"}`, "InvalidParameterValueException", "InvalidParameterValue", "1 to 80 in length"},
		{"no body", "SendMessage", `{"QueueUrl":"/0/q"}`, "MissingRequiredParameterException", "MissingParameter", "The request must contain the parameter MessageBody."},
		{"a character that XML has not", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"\u0000"}`, "InvalidMessageContents", "InvalidMessageContents", "Invalid characters"},
		{"U+FFFF", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"a\uffff"}`, "InvalidMessageContents", "InvalidMessageContents", "Invalid characters"},
		{"too long", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"` + strings.Repeat("x", batchBytes+1) + `"}`, "InvalidParameterValueException", "InvalidParameterValue", "Message must be shorter than 1048576 bytes."},
		{"a list as a text", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":["x"]}`, "SerializationException", "SerializationException", "MessageBody must be a text."},
		{"a fraction", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","DelaySeconds":1.5}`, "SerializationException", "SerializationException", "DelaySeconds must be an integer."},
		{"a long delay", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","DelaySeconds":901}`, "InvalidParameterValueException", "InvalidParameterValue", "Value 901 for parameter DelaySeconds is invalid."},
		{"11 messages", "ReceiveMessage", `{"QueueUrl":"/0/q","MaxNumberOfMessages":11}`, "InvalidParameterValueException", "InvalidParameterValue", "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
		{"a number beyond 64 bits", "ReceiveMessage", `{"QueueUrl":"/0/q","VisibilityTimeout":99999999999999999999}`, "InvalidParameterValueException", "InvalidParameterValue", "VisibilityTimeout"},
		{"no visibility", "ChangeMessageVisibility", `{"QueueUrl":"/0/q","ReceiptHandle":"h"}`, "MissingRequiredParameterException", "MissingParameter", "VisibilityTimeout"},
		{"no entries", "SendMessageBatch", `{"QueueUrl":"/0/q","Entries":[]}`, "EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", "at least one SendMessageBatchRequestEntry"},
		{"11 entries", "SendMessageBatch", `{"QueueUrl":"/0/q","Entries":[` + entries(11) + `]}`, "TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11."},
		{"an id twice", "SendMessageBatch", `{"QueueUrl":"/0/q","Entries":[` + entries(2) + `]}`, "BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "Id a repeated."},
		{"an id with a space", "DeleteMessageBatch", `{"QueueUrl":"/0/q","Entries":[{"Id":"a b","ReceiptHandle":"h"}]}`, "InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", "at most 80 letters"},
		{"a batch that is too long", "SendMessageBatch", `{"QueueUrl":"/0/q","Entries":[{"Id":"a","MessageBody":"` + big + `"},{"Id":"b","MessageBody":"` + big + `x"}]}`, "BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", "You have sent 1048577 bytes."},
		{"an attribute without a type", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","MessageAttributes":{"a":{"StringValue":"v"}}}`, "InvalidParameterValueException", "InvalidParameterValue", "non-empty message attribute type"},
		{"an attribute without a value", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","MessageAttributes":{"a":{"DataType":"String","StringValue":""}}}`, "InvalidParameterValueException", "InvalidParameterValue", "non-empty message attribute value"},
		{"a reserved attribute", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","MessageAttributes":{"AWS.a":{"DataType":"String","StringValue":"v"}}}`, "InvalidParameterValueException", "InvalidParameterValue", "'AWS.a' is invalid"},
		{"no number", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","MessageAttributes":{"a":{"DataType":"Number","StringValue":"v"}}}`, "InvalidParameterValueException", "InvalidParameterValue", "to a number"},
		{"no base64", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"!"}}}`, "SerializationException", "SerializationException", "not base64"},
		{"an unknown system attribute", "SendMessage", `{"QueueUrl":"/0/q","MessageBody":"x","MessageSystemAttributes":{"a":{"DataType":"String","StringValue":"v"}}}`, "InvalidParameterValueException", "InvalidParameterValue", "system attribute"},
		{"an unknown operation", "Explode", `{}`, "UnknownOperationException", "InvalidAction", "The action Explode is not valid"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			_, bad := jsonCall(t, x.op, x.json)
			if bad == nil {
				t.Fatal("it was taken")
			}
			if bad.Shape != x.shape || bad.code() != x.code || bad.Status != 400 || !strings.Contains(bad.Text, x.text) {
				t.Errorf("%s, code %s, status %d: %s", bad.Shape, bad.code(), bad.Status, bad.Text)
			}
		})
	}
}

func TestDecode_refusedForm(t *testing.T) {
	t.Parallel()
	for form, text := range map[string]string{
		"QueueUrl=%zz":                                               "percent-encoded",
		"QueueUrl=/0/q&QueueUrl=/0/p":                                "twice",
		"QueueUrl=/0/q&QueueUrl.1=a":                                 "twice, or within another",
		"QueueUrl=/0/q&Tag.0.Key=a":                                  "number of an element",
		"QueueUrl=/0/q&Tag.01.Key=a":                                 "number of an element",
		"QueueUrl=/0/q&Tag.1.Value=a":                                "has no Key",
		"QueueUrl=/0/q&Tag.1.Key=a&Tag.2.Key=a":                      "twice",
		"QueueUrl=/0/q&" + strings.Repeat("a.b.c.d.e.f.g.h.i=1&", 3): "too many",
		"QueueUrl=/0/":                                               "QueueUrl",
	} {
		_, bad := formCall(t, "TagQueue", form)
		if bad == nil || bad.Status != 400 || !strings.Contains(bad.Text, text) {
			t.Errorf("%.60s: %v, want %s", form, bad, text)
		}
	}
	if _, bad := formCall(t, "PurgeQueue", "QueueUrl=/0/a.b"); bad == nil || bad.Text != "The specified queue does not exist for this wsdl version." {
		t.Error(bad)
	}
}

// An entry of a batch that is wrong leaves the others alone.
func TestDecode_oneEntryIsWrong(t *testing.T) {
	t.Parallel()
	c, bad := jsonCall(t, "SendMessageBatch", `{"QueueUrl":"/0/q","Entries":[{"Id":"a","MessageBody":""},{"Id":"b","MessageBody":"x"}]}`)
	if bad != nil {
		t.Fatal(bad)
	}
	if c.Entries[0].Bad == nil || c.Entries[1].Bad != nil {
		t.Errorf("%v, %v", c.Entries[0].Bad, c.Entries[1].Bad)
	}
}

// Whatever is sent, it is read or refused with the status of a bad request.
func FuzzDecode(f *testing.F) {
	for _, r := range requests {
		op, _ := opOf(r.op)
		f.Add(uint8(op), false, r.json)
		f.Add(uint8(op), true, r.form)
	}
	f.Fuzz(func(t *testing.T, op uint8, query bool, body string) {
		c, bad := Decode(Head{Op: Op(op) % Ops, Query: query}, "", []byte(body))
		switch {
		case bad != nil && (bad.Status != 400 || bad.Text == ""):
			t.Errorf("%+v", bad)
		case bad == nil && len(c.Entries) > entriesMax:
			t.Errorf("%d entries", len(c.Entries))
		}
	})
}
