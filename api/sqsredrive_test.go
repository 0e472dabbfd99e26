package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
