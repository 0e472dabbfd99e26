package fuzz

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/rand"
	"net/http"
	"slices"
	"strings"
)

// The endpoint for clients of Amazon SQS is not in the description: its calls are those of Amazon's. Here are examples
// of each, in both protocols.

const (
	sqsQueue = `"QueueUrl":"http://127.0.0.1/000000000000/mail"`
	sqsForm  = "&Version=2012-11-05&QueueUrl=http%3A%2F%2F127.0.0.1%2F000000000000%2Fmail&"
)

var sqsJSON = map[string][]string{
	"AddPermission":                {sqsQueue + `,"Label":"l","AWSAccountIds":["0"],"Actions":["*"]`},
	"CancelMessageMoveTask":        {`"TaskHandle":"h"`},
	"ChangeMessageVisibility":      {sqsQueue + `,"ReceiptHandle":"HANDLE","VisibilityTimeout":30`, sqsQueue + `,"ReceiptHandle":"HANDLE","VisibilityTimeout":0`},
	"ChangeMessageVisibilityBatch": {sqsQueue + `,"Entries":[{"Id":"a","ReceiptHandle":"HANDLE","VisibilityTimeout":30},{"Id":"b","ReceiptHandle":"HANDLE","VisibilityTimeout":1}]`},
	"CreateQueue":                  {`"QueueName":"mail"`, `"QueueName":"mail","Attributes":{"VisibilityTimeout":"10","DelaySeconds":"0"},"tags":{"team":"a"}`, `"QueueName":"mail.fifo","Attributes":{"FifoQueue":"true"}`},
	"DeleteMessage":                {sqsQueue + `,"ReceiptHandle":"HANDLE"`},
	"DeleteMessageBatch":           {sqsQueue + `,"Entries":[{"Id":"a","ReceiptHandle":"HANDLE"},{"Id":"b","ReceiptHandle":"HANDLE"}]`},
	"DeleteQueue":                  {`"QueueUrl":"http://127.0.0.1/000000000000/default"`},
	"GetQueueAttributes":           {sqsQueue + `,"AttributeNames":["All"]`},
	"GetQueueUrl":                  {`"QueueName":"mail"`},
	"ListDeadLetterSourceQueues":   {sqsQueue},
	"ListMessageMoveTasks":         {`"SourceArn":"arn:aws:sqs:eu:000000000000:mail"`},
	"ListQueues":                   {``, `"QueueNamePrefix":"m","MaxResults":10`},
	"ListQueueTags":                {sqsQueue},
	"PurgeQueue":                   {sqsQueue},
	"ReceiveMessage":               {sqsQueue + `,"MaxNumberOfMessages":10,"AttributeNames":["All"],"MessageAttributeNames":["All"]`, sqsQueue + `,"WaitTimeSeconds":0,"VisibilityTimeout":1`},
	"RemovePermission":             {sqsQueue + `,"Label":"l"`},
	"SendMessage":                  {sqsQueue + `,"MessageBody":"hello","DelaySeconds":0`, sqsQueue + `,"MessageBody":"é","MessageGroupId":"g","MessageAttributes":{"n":{"DataType":"Number","StringValue":"1"},"b":{"DataType":"Binary","BinaryValue":"AAE="}}`},
	"SendMessageBatch":             {sqsQueue + `,"Entries":[{"Id":"a","MessageBody":"1"},{"Id":"b","MessageBody":"2","MessageAttributes":{"s":{"DataType":"String.x","StringValue":"v"}}}]`},
	"SetQueueAttributes":           {sqsQueue + `,"Attributes":{"VisibilityTimeout":"5","MaximumMessageSize":"2048"}`},
	"StartMessageMoveTask":         {`"SourceArn":"arn:aws:sqs:eu:000000000000:mail"`},
	"TagQueue":                     {sqsQueue + `,"Tags":{"a":"b"}`},
	"UntagQueue":                   {sqsQueue + `,"TagKeys":["a"]`},
}

var sqsForms = map[string]string{
	"CreateQueue":                  "&Version=2012-11-05&QueueName=mail&Attribute.1.Name=VisibilityTimeout&Attribute.1.Value=10&Tag.1.Key=a&Tag.1.Value=b",
	"ChangeMessageVisibilityBatch": sqsForm + "ChangeMessageVisibilityBatchRequestEntry.1.Id=a&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=HANDLE&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=3",
	"DeleteMessage":                sqsForm + "ReceiptHandle=HANDLE",
	"DeleteMessageBatch":           sqsForm + "DeleteMessageBatchRequestEntry.1.Id=a&DeleteMessageBatchRequestEntry.1.ReceiptHandle=HANDLE",
	"GetQueueAttributes":           sqsForm + "AttributeName.1=All",
	"ListQueues":                   "&Version=2012-11-05&QueueNamePrefix=m",
	"ReceiveMessage":               sqsForm + "MaxNumberOfMessages=10&AttributeName.1=All&MessageAttributeName.1=All",
	"SendMessage":                  sqsForm + "MessageBody=hello&MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=Number&MessageAttribute.1.Value.StringValue=1",
	"SendMessageBatch":             sqsForm + "SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=1&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=2",
	"TagQueue":                     sqsForm + "Tag.1.Key=a&Tag.1.Value=b",
}

// sqsOperations are the calls of the endpoint.
func sqsOperations() []operation {
	var ops []operation
	for name, examples := range sqsJSON {
		op := operation{name: "SQS " + name, method: http.MethodPost, path: "/", header: "X-Amz-Target: AmazonSQS." + name + "\r\nContent-Type: application/x-amz-json-1.0\r\n"}
		for _, example := range examples {
			op.bodies = append(op.bodies, []byte("{"+example+"}"))
		}
		ops = append(ops, op)
	}
	for name, form := range sqsForms {
		ops = append(ops, operation{
			name: "SQS Query " + name, method: http.MethodPost, path: "/", header: "Content-Type: application/x-www-form-urlencoded\r\n",
			bodies: [][]byte{[]byte("Action=" + name + form)},
		})
	}
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.name, b.name) })
	return ops
}

// sqsWrong returns what is wrong with a refusal of the endpoint, "" if nothing. ok is false if the answer is not one of
// the endpoint's.
func sqsWrong(a *answer) (wrong string, ok bool) {
	var shape, code, text, id string
	switch a.header.Get("Content-Type") {
	case "application/x-amz-json-1.0":
		var refusal struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(a.body, &refusal); err != nil {
			return fmt.Sprintf("status %d without a refusal: %v", a.status, err), true
		}
		shape, text, id = refusal.Type, refusal.Message, a.header.Get("X-Amzn-Requestid")
	case "text/xml":
		var refusal struct {
			XMLName   xml.Name `xml:"ErrorResponse"`
			Error     struct{ Code, Message string }
			RequestID string `xml:"RequestId"`
		}
		if err := xml.Unmarshal(a.body, &refusal); err != nil {
			return fmt.Sprintf("status %d without a refusal: %v", a.status, err), true
		}
		shape, text, id = refusal.Error.Code, refusal.Error.Message, refusal.RequestID
	default:
		return "", false
	}
	if code = a.header.Get("X-Amzn-Query-Error"); shape == "" || code == "" || text == "" || id == "" {
		return fmt.Sprintf("a refusal without its shape, code, text or id: %q, %q, %q, %q", shape, code, text, id), true
	}
	return "", true
}

// withHandle fills in the receipt handle of a message that was received, if there is one.
func (m *maker) withHandle(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte("HANDLE"), []byte(m.seen.handle(m.rng)))
}

// handle returns a receipt handle that was answered, or none that is valid.
func (s *seen) handle(rng *rand.Rand) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.handles) == 0 {
		return "forged"
	}
	return s.handles[rng.Intn(len(s.handles))]
}
