package api

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/fsm/command"
)

const fifoURL = `"QueueUrl":"/0/mail.fifo"`

// bodies returns the bodies of messages, in order.
func bodies(messages []sqsMessage) string {
	var all []string
	for _, m := range messages {
		all = append(all, m.Body)
	}
	return strings.Join(all, " ")
}

// The messages of a group come in order, up to ten of it at once and none while one of it is in flight.
func TestSQS_FIFO(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	create := `"QueueName":"mail.fifo","Attributes":{"FifoQueue":"true","VisibilityTimeout":"10"}`
	s.sqsDone(t, "CreateQueue", create)
	s.sqsDone(t, "CreateQueue", create)
	send := func(body, group string) sqsAnswer {
		t.Helper()
		return s.sqsDone(t, "SendMessage", fmt.Sprintf(`%s,"MessageBody":%q,"MessageGroupId":%q,"MessageDeduplicationId":%q`, fifoURL, body, group, "id-"+body))
	}
	receive := func(params string) []sqsMessage {
		t.Helper()
		return s.sqsDone(t, "ReceiveMessage", fifoURL+params).Messages
	}
	handle := func(op string, m sqsMessage, more string) sqsAnswer {
		t.Helper()
		return s.sqs(t, op, fmt.Sprintf(`%s,"ReceiptHandle":%q%s`, fifoURL, m.ReceiptHandle, more))
	}
	for _, body := range []string{"a1", "b1", "a2", "a3", "b2"} {
		send(body, body[:1])
	}
	if got := send("a1", "a").body; !strings.Contains(got, `"SequenceNumber":"00000000000000000001"`) {
		t.Errorf("%s", got)
	}
	first := receive(`,"MaxNumberOfMessages":10,"AttributeNames":["All"]`)
	if got := bodies(first); got != "a1 a2 a3 b1 b2" {
		t.Fatalf("%s", got)
	}
	if a := first[1].Attributes; a["MessageGroupId"] != "a" || a["MessageDeduplicationId"] != "id-a2" || a["SequenceNumber"] != fmt.Sprintf("%020d", 3) {
		t.Errorf("%v", a)
	}
	// What is given back comes again before those behind it, once none of its group is in flight.
	handle("ChangeMessageVisibility", first[0], `,"VisibilityTimeout":0`)
	handle("DeleteMessage", first[1], "")
	if got := bodies(receive(`,"MaxNumberOfMessages":10`)); got != "" {
		t.Errorf("%s, while a3 is in flight", got)
	}
	waitOn(t, node, 11*time.Second)
	handle("DeleteMessage", first[2], "").refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
	again := receive(`,"MaxNumberOfMessages":2`)
	if got := bodies(again); got != "a1 a3" {
		t.Errorf("%s", got)
	}
	handle("DeleteMessage", again[0], "")
	handle("DeleteMessage", again[0], "")
	if got := s.call(t, "GET /metrics", "").body; !strings.Contains(got, "\nclaimq_sqs_late_deletes_total 1\n") {
		t.Error("the late delete is not counted")
	}

	// A receive that is tried again gets the same.
	const attempt = `,"MaxNumberOfMessages":10,"ReceiveRequestAttemptId":"try-1"`
	b := receive(attempt)
	if got := receive(attempt); bodies(b) != "b1 b2" || fmt.Sprint(got) != fmt.Sprint(b) {
		t.Errorf("%+v, and then %+v", b, got)
	}
	if got := receive(strings.Replace(attempt, "try-1", "try-2", 1)); len(got) != 0 {
		t.Errorf("%+v", got)
	}

	for params, want := range map[string]string{
		`,"MessageBody":"x","MessageDeduplicationId":"1"`:                                       "MissingRequiredParameterException",
		`,"MessageBody":"x","MessageGroupId":"a"`:                                               "InvalidParameterValueException",
		`,"MessageBody":"x","MessageGroupId":"a","MessageDeduplicationId":"1","DelaySeconds":1`: "InvalidParameterValueException",
	} {
		code := map[string]string{"InvalidParameterValueException": "InvalidParameterValue", "MissingRequiredParameterException": "MissingParameter"}[want]
		s.sqs(t, "SendMessage", fifoURL+params).refusedAs(t, 400, want, code)
	}
	for _, x := range []struct{ op, params, shape, code string }{
		{"CreateQueue", `"QueueName":"other.fifo"`, "InvalidParameterValueException", "InvalidParameterValue"},
		{"CreateQueue", `"QueueName":"other","Attributes":{"FifoQueue":"true"}`, "InvalidParameterValueException", "InvalidParameterValue"},
		{"CreateQueue", `"QueueName":"other","Attributes":{"ContentBasedDeduplication":"true"}`, "InvalidAttributeName", "InvalidAttributeName"},
		{"SetQueueAttributes", fifoURL + `,"Attributes":{"FifoQueue":"false"}`, "InvalidAttributeValue", "InvalidAttributeValue"},
		{"SetQueueAttributes", fifoURL + `,"Attributes":{"DeduplicationScope":"all"}`, "InvalidAttributeValue", "InvalidAttributeValue"},
	} {
		s.sqs(t, x.op, x.params).refusedAs(t, 400, x.shape, x.code)
	}
	a := s.sqsDone(t, "GetQueueAttributes", fifoURL+`,"AttributeNames":["All"]`).Attributes
	if a["FifoQueue"] != "true" || a["ContentBasedDeduplication"] != "false" || a["DeduplicationScope"] != "queue" || a["FifoThroughputLimit"] != "perQueue" {
		t.Errorf("%v", a)
	}
	s.sqsDone(t, "CreateQueue", `"QueueName":"dead"`)
	s.sqs(t, "SetQueueAttributes", fifoURL+`,"Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs::000000000000:dead\",\"maxReceiveCount\":1}"}`).
		refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
}

// A deduplication id is taken for 5 minutes after the send, whatever is done to the message, and then free.
func TestSQS_Deduplication(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail.fifo","Attributes":{"FifoQueue":"true","ContentBasedDeduplication":"true","DeduplicationScope":"messageGroup","FifoThroughputLimit":"perMessageGroupId"}`)
	send := func(group, id string) string {
		t.Helper()
		if id != "" {
			id = fmt.Sprintf(`,"MessageDeduplicationId":%q`, id)
		}
		return s.sqsDone(t, "SendMessage", fmt.Sprintf(`%s,"MessageBody":"x","MessageGroupId":%q%s`, fifoURL, group, id)).MessageID
	}
	first := send("a", "")
	if again := send("a", ""); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	if other := send("b", ""); other == first {
		t.Error("an id is taken for another group")
	}
	if own := send("a", "own"); own == first {
		t.Error("its own id is that of its body")
	}
	got := s.sqsDone(t, "ReceiveMessage", fifoURL).Messages
	s.sqsDone(t, "DeleteMessage", fmt.Sprintf(`%s,"ReceiptHandle":%q`, fifoURL, got[0].ReceiptHandle))
	waitOn(t, node, 299*time.Second)
	if again := send("a", ""); again != first {
		t.Errorf("%s, then %s, after it was deleted", first, again)
	}
	waitOn(t, node, 2*time.Second)
	if later := send("a", ""); later == first {
		t.Error("the id is still taken")
	}
}

// A message that is not in flight at the end of its retention is removed, also one that was received before.
func TestSQS_Retention(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	node.Mu.Lock()
	node.Stamp.T = time.Now().UnixMilli() // from which retentions are counted
	node.Mu.Unlock()
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"MessageRetentionPeriod":"60","VisibilityTimeout":"10"}`)
	for i := range 3 {
		s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"`+strconv.Itoa(i)+`"`)
	}
	held := s.sqsDone(t, "ReceiveMessage", mailURL+`,"VisibilityTimeout":600`).Messages
	s.sqsDone(t, "ReceiveMessage", mailURL)
	left := func() string {
		t.Helper()
		if _, err := node.Propose(t.Context(), command.Tick{}); err != nil {
			t.Fatal(err)
		}
		a := s.sqsDone(t, "GetQueueAttributes", mailURL+`,"AttributeNames":["All"]`).Attributes
		return a["ApproximateNumberOfMessages"] + " and " + a["ApproximateNumberOfMessagesNotVisible"]
	}
	waitOn(t, node, 59*time.Second)
	if got := left(); got != "2 and 1" {
		t.Errorf("%s before", got)
	}
	waitOn(t, node, time.Minute)
	if got := left(); got != "0 and 1" {
		t.Errorf("%s after", got)
	}
	s.sqsDone(t, "ChangeMessageVisibility", fmt.Sprintf(`%s,"ReceiptHandle":%q,"VisibilityTimeout":0`, mailURL, held[0].ReceiptHandle))
	if got := left(); got != "0 and 0" {
		t.Errorf("%s once it was given back", got)
	}
}
