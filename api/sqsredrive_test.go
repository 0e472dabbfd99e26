package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/fsm/command"
)

// A message whose visibility timeout has ended as often as its queue allows is in the dead-letter queue, with its id.
func TestSQS_Redrive(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	const arn = "arn:aws:sqs::000000000000:"
	policy := func(queue string, most any) string {
		return fmt.Sprintf(`{\"deadLetterTargetArn\":\"%s%s\",\"maxReceiveCount\":%v}`, arn, queue, most)
	}
	s.sqsDone(t, "CreateQueue", `"QueueName":"dead"`)
	create := `"QueueName":"mail","Attributes":{"VisibilityTimeout":"1","RedrivePolicy":"` + policy("dead", 2) + `"}`
	s.sqsDone(t, "CreateQueue", create)
	s.sqsDone(t, "CreateQueue", create)
	if got, want := s.sqsDone(t, "GetQueueAttributes", mailURL+`,"AttributeNames":["RedrivePolicy"]`).Attributes["RedrivePolicy"], strings.ReplaceAll(policy("dead", `"2"`), `\`, ""); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	deadURL := `"QueueUrl":"/0/dead"`
	if got := s.sqsDone(t, "ListDeadLetterSourceQueues", deadURL).body; !strings.Contains(got, `"queueUrls":["http://`) || !strings.HasSuffix(got, `/000000000000/mail"]}`) {
		t.Errorf("%s", got)
	}
	if got := s.sqsDone(t, "ListDeadLetterSourceQueues", mailURL).body; got != "{}" {
		t.Errorf("%s", got)
	}

	sent := s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x","MessageAttributes":{"a":{"DataType":"String","StringValue":"1"}}`)
	for range 2 {
		if got := s.sqsDone(t, "ReceiveMessage", mailURL).Messages; len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		waitOn(t, node, 2*time.Second)
	}
	if got := s.sqsDone(t, "ReceiveMessage", mailURL).Messages; len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	dead := s.sqsDone(t, "ReceiveMessage", deadURL+`,"AttributeNames":["All"],"MessageAttributeNames":["All"]`).Messages
	if len(dead) != 1 || dead[0].MessageID != sent.MessageID || dead[0].Body != "x" || dead[0].MessageAttributes["a"].StringValue != "1" ||
		dead[0].Attributes["DeadLetterQueueSourceArn"] != arn+"mail" || dead[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("%+v", dead)
	}

	// Set to 0, a visibility timeout ends at once, and counts.
	s.sqsDone(t, "SetQueueAttributes", mailURL+`,"Attributes":{"RedrivePolicy":"`+policy("dead", 1)+`"}`)
	s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"y"`)
	got := s.sqsDone(t, "ReceiveMessage", mailURL).Messages
	s.sqsDone(t, "ChangeMessageVisibility", fmt.Sprintf(`%s,"ReceiptHandle":%q,"VisibilityTimeout":0`, mailURL, got[0].ReceiptHandle))
	if next := s.sqsDone(t, "ReceiveMessage", deadURL).Messages; len(next) != 1 || next[0].MessageID != got[0].MessageID || next[0].Body != "y" {
		t.Errorf("%+v", next)
	}

	allow := func(policy string) {
		s.sqsDone(t, "SetQueueAttributes", deadURL+`,"Attributes":{"RedriveAllowPolicy":"`+strings.ReplaceAll(policy, `"`, `\"`)+`"}`)
	}
	set := mailURL + `,"Attributes":{"RedrivePolicy":"` + policy("dead", 3) + `"}`
	others := `{"redrivePermission":"byQueue","sourceQueueArns":["` + arn + `other","` + arn + `third"]}`
	for _, denied := range []string{`{"redrivePermission":"denyAll"}`, others} {
		allow(denied)
		s.sqs(t, "SetQueueAttributes", set).refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
	}
	if got := s.sqsDone(t, "GetQueueAttributes", deadURL+`,"AttributeNames":["All"]`).Attributes["RedriveAllowPolicy"]; got != others {
		t.Errorf("%s", got)
	}
	for _, allowed := range []string{`{"redrivePermission":"byQueue","sourceQueueArns":["` + arn + `mail"]}`, `{"redrivePermission":"allowAll"}`, ``} {
		allow(allowed)
		s.sqsDone(t, "SetQueueAttributes", set)
	}
	s.sqsDone(t, "SetQueueAttributes", mailURL+`,"Attributes":{"RedrivePolicy":""}`)
	if got := s.sqsDone(t, "ListDeadLetterSourceQueues", deadURL).body; got != "{}" {
		t.Errorf("%s", got)
	}
	for name, wrong := range map[string]string{
		"RedrivePolicy": `{}|{"deadLetterTargetArn":"` + arn + `dead"}|{"deadLetterTargetArn":"` + arn + `none","maxReceiveCount":1}|{"deadLetterTargetArn":"` + arn + `mail","maxReceiveCount":1}|` +
			`{"deadLetterTargetArn":"` + arn + `dead","maxReceiveCount":0}|{"deadLetterTargetArn":"` + arn + `dead","maxReceiveCount":1001}|{"deadLetterTargetArn":"dead","maxReceiveCount":1}|x`,
		"RedriveAllowPolicy": `{}|[]|{"redrivePermission":"some"}|{"redrivePermission":"byQueue"}|{"redrivePermission":"denyAll","sourceQueueArns":["` + arn + `mail"]}|{"redrivePermission":"byQueue","sourceQueueArns":["x"]}`,
	} {
		for policy := range strings.SplitSeq(wrong, "|") {
			s.sqs(t, "SetQueueAttributes", fmt.Sprintf(`%s,"Attributes":{%q:%q}`, mailURL, name, policy)).refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
		}
	}
}

// A message waits for as long as its queue says, unless it says itself; 0 is no wait.
func TestSQS_Delay(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"DelaySeconds":"5"}`)
	s.sqsDone(t, "SendMessageBatch", mailURL+`,"Entries":[{"Id":"a","MessageBody":"queue's"},{"Id":"b","MessageBody":"none","DelaySeconds":0},{"Id":"c","MessageBody":"its own","DelaySeconds":9}]`)
	for _, want := range []string{"none", "queue's", "its own"} {
		got := s.sqsDone(t, "ReceiveMessage", mailURL+`,"MaxNumberOfMessages":10`).Messages
		if len(got) != 1 || got[0].Body != want {
			t.Fatalf("%+v, want %s", got, want)
		}
		s.sqsDone(t, "DeleteMessage", fmt.Sprintf(`%s,"ReceiptHandle":%q`, mailURL, got[0].ReceiptHandle))
		waitOn(t, node, 5*time.Second)
	}
}

// A move brings dead letters back to their queues, or to another one. It is one at a time, can be cancelled, and says how it ended.
func TestSQS_MoveTasks(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	const (
		arn    = "arn:aws:sqs::000000000000:"
		source = `"SourceArn":"` + arn + `dead"`
	)
	deadURL := `"QueueUrl":"/0/dead"`
	s.sqsDone(t, "CreateQueue", `"QueueName":"dead"`)
	s.sqsDone(t, "CreateQueue", `"QueueName":"other"`)
	s.sqs(t, "StartMessageMoveTask", source).refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"`+arn+`dead\",\"maxReceiveCount\":1}"}`)
	die := func(body string) {
		s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"`+body+`","MessageAttributes":{"a":{"DataType":"String","StringValue":"1"}}`)
		got := s.sqsDone(t, "ReceiveMessage", mailURL).Messages
		s.sqsDone(t, "ChangeMessageVisibility", fmt.Sprintf(`%s,"ReceiptHandle":%q,"VisibilityTimeout":0`, mailURL, got[0].ReceiptHandle))
	}
	tick := func(ms int64) {
		t.Helper()
		node.Advance(ms)
		if _, err := node.Propose(t.Context(), command.Tick{}); err != nil {
			t.Fatal(err)
		}
	}
	last := func() map[string]any {
		t.Helper()
		var list struct{ Results []map[string]any }
		if err := json.Unmarshal([]byte(s.sqsDone(t, "ListMessageMoveTasks", source).body), &list); err != nil || len(list.Results) > 1 {
			t.Fatalf("%v, %v", list, err)
		}
		if len(list.Results) == 0 {
			return nil
		}
		return list.Results[0]
	}
	if got := last(); got != nil {
		t.Errorf("%v before the first", got)
	}

	// Back to its queue: a new message with what it was sent with, which came from nowhere.
	die("x")
	started := s.sqsDone(t, "StartMessageMoveTask", source)
	s.sqs(t, "StartMessageMoveTask", source).refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
	got := last()
	if !strings.Contains(started.body, `"TaskHandle":"`+fmt.Sprint(got["TaskHandle"])+`"`) || got["Status"] != "RUNNING" || got["SourceArn"] != arn+"dead" || got["ApproximateNumberOfMessagesToMove"] != 1.0 {
		t.Errorf("%s, %v", started.body, got)
	}
	if _, is := got["DestinationArn"]; is {
		t.Errorf("%v", got)
	}
	tick(0)
	tick(1)
	got = last()
	if _, is := got["TaskHandle"]; is || got["Status"] != "COMPLETED" || got["ApproximateNumberOfMessagesMoved"] != 1.0 || got["StartedTimestamp"] == 0.0 {
		t.Errorf("%v", got)
	}
	if got := s.sqsDone(t, "ReceiveMessage", deadURL).Messages; len(got) != 0 {
		t.Errorf("%+v is still there", got)
	}
	back := s.sqsDone(t, "ReceiveMessage", mailURL+`,"AttributeNames":["All"],"MessageAttributeNames":["All"]`).Messages
	if len(back) != 1 || back[0].Body != "x" || back[0].MessageAttributes["a"].StringValue != "1" || back[0].Attributes["ApproximateReceiveCount"] != "1" || back[0].Attributes["DeadLetterQueueSourceArn"] != "" {
		t.Errorf("%+v", back)
	}
	s.sqsDone(t, "DeleteMessage", fmt.Sprintf(`%s,"ReceiptHandle":%q`, mailURL, back[0].ReceiptHandle))

	// One a second, until it is cancelled.
	for _, body := range []string{"1", "2", "3"} {
		die(body)
	}
	started = s.sqsDone(t, "StartMessageMoveTask", source+`,"DestinationArn":"`+arn+`other","MaxNumberOfMessagesPerSecond":1`)
	tick(0)
	tick(999)
	handle := strings.TrimSuffix(strings.TrimPrefix(started.body, "{"), "}")
	if got := s.sqsDone(t, "CancelMessageMoveTask", handle).body; got != `{"ApproximateNumberOfMessagesMoved":1}` {
		t.Errorf("%s", got)
	}
	tick(10_000)
	if got := last(); got["Status"] != "CANCELLED" || got["MaxNumberOfMessagesPerSecond"] != 1.0 || got["DestinationArn"] != arn+"other" || got["ApproximateNumberOfMessagesMoved"] != 1.0 {
		t.Errorf("%v", got)
	}
	s.sqs(t, "CancelMessageMoveTask", handle).refusedAs(t, 400, "InvalidParameterValueException", "InvalidParameterValue")
	if got := s.sqsDone(t, "ReceiveMessage", `"QueueUrl":"/0/other"`).Messages; len(got) != 1 || got[0].Body != "1" {
		t.Errorf("%+v", got)
	}

	// A message that was sent to the queue itself has nowhere to go back to.
	s.sqsDone(t, "PurgeQueue", deadURL)
	s.sqsDone(t, "SendMessage", deadURL+`,"MessageBody":"y"`)
	s.sqsDone(t, "StartMessageMoveTask", source)
	s.sqs(t, "CancelMessageMoveTask", handle).refusedAs(t, 404, "ResourceNotFoundException", "ResourceNotFoundException")
	tick(1)
	if got := last(); got["Status"] != "FAILED" || got["FailureReason"] != "CouldNotDetermineMessageSource" {
		t.Errorf("%v", got)
	}
	// Its destination goes while it moves.
	s.sqsDone(t, "StartMessageMoveTask", source+`,"DestinationArn":"`+arn+`other"`)
	s.sqsDone(t, "DeleteQueue", `"QueueUrl":"/0/other"`)
	tick(1)
	if got := last(); got["Status"] != "FAILED" || got["FailureReason"] != "AWS.SimpleQueueService.NonExistentQueue" {
		t.Errorf("%v", got)
	}
	for _, x := range []struct {
		op, params string
		status     int
		shape      string
	}{
		{"StartMessageMoveTask", ``, 400, "MissingRequiredParameterException"},
		{"StartMessageMoveTask", `"SourceArn":"dead"`, 404, "ResourceNotFoundException"},
		{"StartMessageMoveTask", `"SourceArn":"` + arn + `none"`, 404, "ResourceNotFoundException"},
		{"StartMessageMoveTask", source + `,"DestinationArn":"` + arn + `none"`, 404, "ResourceNotFoundException"},
		{"StartMessageMoveTask", source + `,"DestinationArn":"` + arn + `dead"`, 400, "InvalidParameterValueException"},
		{"StartMessageMoveTask", source + `,"MaxNumberOfMessagesPerSecond":501`, 400, "InvalidParameterValueException"},
		{"ListMessageMoveTasks", source + `,"MaxResults":11`, 400, "InvalidParameterValueException"},
		{"ListMessageMoveTasks", `"SourceArn":"` + arn + `none"`, 404, "ResourceNotFoundException"},
		{"CancelMessageMoveTask", ``, 400, "MissingRequiredParameterException"},
		{"CancelMessageMoveTask", `"TaskHandle":"x"`, 400, "InvalidParameterValueException"},
	} {
		code := map[string]string{"InvalidParameterValueException": "InvalidParameterValue", "MissingRequiredParameterException": "MissingParameter"}[x.shape]
		s.sqs(t, x.op, x.params).refusedAs(t, x.status, x.shape, cmp.Or(code, x.shape))
	}
}
