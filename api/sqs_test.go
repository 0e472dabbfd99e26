package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/sqs"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

func withSQS(c *Config) { c.SQS = &SQS{Account: "000000000000"} }

// sqsAnswer is the answer to a call of SQS in JSON.
type sqsAnswer struct {
	answer
	Type             string   `json:"__type"`
	Message          string   `json:"message"`
	QueueURL         string   `json:"QueueUrl"`
	QueueURLs        []string `json:"QueueUrls"`
	NextToken        string
	MessageID        string `json:"MessageId"`
	Attributes, Tags map[string]string
	Messages         []sqsMessage
	Successful       []struct {
		ID string `json:"Id"`
	}
	Failed []struct {
		ID   string `json:"Id"`
		Code string
	}
}

type sqsMessage struct {
	MessageID     string `json:"MessageId"`
	ReceiptHandle string
	Body          string
	Attributes    map[string]string

	MD5OfBody, MD5OfMessageAttributes string
	MessageAttributes                 map[string]struct {
		DataType, StringValue string
		BinaryValue           []byte
	}
}

// sqs makes a call of SQS in JSON; params are its members without braces.
func (s *Server) sqs(t testing.TB, op, params string, headers ...string) sqsAnswer {
	t.Helper()
	a := doUndescribed(func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, false) }, "POST /", "{"+params+"}", append(headers, "X-Amz-Target: AmazonSQS."+op)...)
	out := sqsAnswer{answer: a}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%s: %v: %s", op, err, a.body)
	}
	if a.header["Content-Type"] != "application/x-amz-json-1.0" || a.header["X-Amzn-Requestid"] == "" {
		t.Errorf("%s: headers %v", op, a.header)
	}
	return out
}

// done is sqs for a call that must succeed.
func (s *Server) sqsDone(t testing.TB, op, params string, headers ...string) sqsAnswer {
	t.Helper()
	a := s.sqs(t, op, params, headers...)
	if a.status != 200 {
		t.Fatalf("%s: status %d: %s", op, a.status, a.body)
	}
	return a
}

// refusedAs checks that a call was refused by an error of the model.
func (a sqsAnswer) refusedAs(t testing.TB, status int, shape, code string) {
	t.Helper()
	_, short, _ := strings.Cut(a.Type, "#")
	if a.status != status || short != shape || !strings.HasPrefix(a.header["X-Amzn-Query-Error"], code+";") || a.Message == "" {
		t.Errorf("status %d, %s, %q: %s; want %d, %s, %s", a.status, a.Type, a.header["X-Amzn-Query-Error"], a.Message, status, shape, code)
	}
}

const mailURL = `"QueueUrl":"http://127.0.0.1:7400/000000000000/mail"`

// waitOn lets time pass on the node, and does what is due by then.
func waitOn(t testing.TB, node *nodetest.Node, d time.Duration) {
	t.Helper()
	node.Mu.Lock()
	node.Stamp.U += d.Milliseconds()
	node.Stamp.T += d.Milliseconds()
	var due []command.Lease
	for l := range node.Machine.Leases() {
		if l.EndU <= node.Stamp.U {
			due = append(due, l)
		}
	}
	node.Mu.Unlock()
	if len(due) > 0 {
		apply(t, node, command.Expire{Items: due})
	}
	apply(t, node, command.Tick{})
}

// A message's life, by the calls that clients make most.
func TestSQS(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqs(t, "SendMessage", mailURL+`,"MessageBody":"x"`).refusedAs(t, 400, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
	if got := s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"VisibilityTimeout":"10"},"tags":{"team":"a"}`).QueueURL; got != "http://127.0.0.1:7400/000000000000/mail" {
		t.Errorf("URL %s", got)
	}
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"VisibilityTimeout":"10"}`)
	s.sqs(t, "CreateQueue", `"QueueName":"mail","Attributes":{"VisibilityTimeout":"11"}`).refusedAs(t, 400, "QueueNameExists", "QueueAlreadyExists")
	sent := s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"hello €"`)
	got := s.sqsDone(t, "ReceiveMessage", mailURL+`,"AttributeNames":["All"],"MaxNumberOfMessages":10`).Messages
	if len(got) != 1 || got[0].Body != "hello €" || got[0].MessageID != sent.MessageID || got[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Fatalf("%+v", got)
	}
	if again := s.sqsDone(t, "ReceiveMessage", mailURL); len(again.Messages) != 0 || again.body != "{}" {
		t.Errorf("%s", again.body)
	}
	waitOn(t, node, 11*time.Second) // its visibility timeout is over
	again := s.sqsDone(t, "ReceiveMessage", mailURL+`,"AttributeNames":["ApproximateReceiveCount"]`).Messages
	if len(again) != 1 || again[0].Attributes["ApproximateReceiveCount"] != "2" || again[0].ReceiptHandle == got[0].ReceiptHandle {
		t.Fatalf("%+v", again)
	}
	// The first receiver is late: its delete is answered, and takes nothing from the second.
	s.sqsDone(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"`+got[0].ReceiptHandle+`"`)
	if n := s.sqsDone(t, "GetQueueAttributes", mailURL+`,"AttributeNames":["All"]`).Attributes["ApproximateNumberOfMessagesNotVisible"]; n != "1" {
		t.Errorf("%s are not visible", n)
	}
	s.sqs(t, "ChangeMessageVisibility", mailURL+`,"VisibilityTimeout":5,"ReceiptHandle":"`+got[0].ReceiptHandle+`"`).refusedAs(t, 400, "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight")
	s.sqsDone(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"`+again[0].ReceiptHandle+`"`)
	s.sqsDone(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"`+again[0].ReceiptHandle+`"`)
	s.sqs(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"forged"`).refusedAs(t, 400, "ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid")
	if n := node.Machine.Counts(); n != [len(n)]int64{} {
		t.Errorf("tasks are kept: %v", n)
	}
	s.sqsDone(t, "DeleteQueue", mailURL)
	s.sqs(t, "GetQueueUrl", `"QueueName":"mail"`).refusedAs(t, 400, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
}

// A change of the visibility timeout counts from now, and may be shorter than what was left; 0 ends the claim.
func TestSQS_ChangeMessageVisibility(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`)
	receive := func() []sqsMessage {
		return s.sqsDone(t, "ReceiveMessage", mailURL+`,"AttributeNames":["ApproximateReceiveCount"]`).Messages
	}
	change := func(handle string, seconds int) {
		s.sqsDone(t, "ChangeMessageVisibility", fmt.Sprintf(`%s,"ReceiptHandle":%q,"VisibilityTimeout":%d`, mailURL, handle, seconds))
	}
	change(receive()[0].ReceiptHandle, 2)
	waitOn(t, node, 2100*time.Millisecond)
	second := receive()
	if len(second) != 1 || second[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Fatalf("%+v", second)
	}
	change(second[0].ReceiptHandle, 100)
	waitOn(t, node, 40*time.Second)
	if got := receive(); len(got) != 0 {
		t.Fatalf("%+v, although it was claimed for longer", got)
	}
	change(second[0].ReceiptHandle, 0)
	if got := receive(); len(got) != 1 || got[0].Attributes["ApproximateReceiveCount"] != "3" {
		t.Errorf("%+v", got)
	}
}

// A send and a receive that an SDK tries again are done once.
func TestSQS_Repeats(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	const id, other = "Amz-Sdk-Invocation-Id: 1", "Amz-Sdk-Invocation-Id: 2"
	first := s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`, id)
	again := s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`, id)
	if first.MessageID != again.MessageID || first.body != again.body {
		t.Errorf("%s and %s", first.body, again.body)
	}
	batch := mailURL + `,"Entries":[{"Id":"a","MessageBody":"x"},{"Id":"b","MessageBody":"x"}]`
	if a, b := s.sqsDone(t, "SendMessageBatch", batch, id), s.sqsDone(t, "SendMessageBatch", batch, id); a.body != b.body {
		t.Errorf("%s and %s", a.body, b.body)
	}
	s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`, other) // another call
	s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"y"`, id)    // the same id for another request
	if n := node.Machine.Counts()[fsm.StatusPending]; n != 5 {
		t.Errorf("%d messages", n)
	}
	got, repeated := s.sqsDone(t, "ReceiveMessage", mailURL, id), s.sqsDone(t, "ReceiveMessage", mailURL, id)
	if len(got.Messages) != 1 || got.body != repeated.body {
		t.Errorf("%s and %s", got.body, repeated.body)
	}
	if next := s.sqsDone(t, "ReceiveMessage", mailURL, other); len(next.Messages) != 1 || next.body == got.body {
		t.Errorf("%s", next.body)
	}
	s.sqsDone(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"`+got.Messages[0].ReceiptHandle+`"`)
	if late := s.sqsDone(t, "ReceiveMessage", mailURL, id); len(late.Messages) != 0 {
		t.Errorf("%s, after it was deleted", late.body)
	}
}

// A receive is answered in the buffer that its connection has.
func TestSQS_buffer(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`)
	var ctx fasthttp.RequestCtx
	ctx.Init2(conntest.Nop{}, nil, true)
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.SetRequestURI("/")
	ctx.Request.Header.SetHost("127.0.0.1:7400")
	ctx.Request.Header.Set(amzTarget, "AmazonSQS.ReceiveMessage")
	ctx.Request.SetBodyString(`{` + mailURL + `}`)
	buffer := make([]byte, 0, 8<<10)
	ctx.Response.SwapBody(buffer)
	s.core.handle(&ctx, false)
	if b := ctx.Response.Body(); !strings.Contains(string(b), `"Body":"x"`) || &b[0] != &buffer[:1][0] {
		t.Errorf("%d bytes of room: %s", cap(b), b)
	}
}

// A late delete of a message that was not received again deletes it.
func TestSQS_LateDelete(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`)
	got := s.sqsDone(t, "ReceiveMessage", mailURL+`,"VisibilityTimeout":1`).Messages
	waitOn(t, node, 2*time.Second)
	s.sqsDone(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"`+got[0].ReceiptHandle+`"`)
	if n := node.Machine.Counts(); n != [len(n)]int64{} {
		t.Errorf("it is kept: %v", n)
	}
}

func TestSQS_Batches(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"MaximumMessageSize":"1024"}`)
	sent := s.sqsDone(t, "SendMessageBatch", mailURL+`,"Entries":[{"Id":"a","MessageBody":"1"},{"Id":"b","MessageBody":"`+strings.Repeat("x", 1025)+`"},{"Id":"c","MessageBody":"3","DelaySeconds":60}]`)
	if len(sent.Successful) != 2 || len(sent.Failed) != 1 || sent.Failed[0].ID != "b" || sent.Failed[0].Code != "InvalidParameterValue" {
		t.Fatalf("%s", sent.body)
	}
	if a := s.sqsDone(t, "GetQueueAttributes", mailURL+`,"AttributeNames":["All"]`).Attributes; a["ApproximateNumberOfMessages"] != "1" || a["ApproximateNumberOfMessagesDelayed"] != "1" {
		t.Errorf("%v", a)
	}
	waitOn(t, node, time.Minute)
	got := s.sqsDone(t, "ReceiveMessage", mailURL+`,"MaxNumberOfMessages":10`).Messages
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	deleted := s.sqsDone(t, "DeleteMessageBatch", fmt.Sprintf(`%s,"Entries":[{"Id":"a","ReceiptHandle":%q},{"Id":"b","ReceiptHandle":"x"},{"Id":"c","ReceiptHandle":%q}]`, mailURL, got[0].ReceiptHandle, got[1].ReceiptHandle))
	if len(deleted.Successful) != 2 || len(deleted.Failed) != 1 || deleted.Failed[0].Code != "ReceiptHandleIsInvalid" {
		t.Errorf("%s", deleted.body)
	}
}

// The attributes that a receive asks for come back unchanged, with the sum that the sender was told. Native workers
// see them, too, and what they submit is a message.
func TestSQS_Attributes(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	sent := s.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x","MessageGroupId":"g","MessageAttributes":{"a.n":{"DataType":"Number.int","StringValue":"7"},"b":{"DataType":"Binary","BinaryValue":"AAE="}},"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"Root=1"}}`)
	var sums struct{ MD5OfMessageAttributes, MD5OfMessageSystemAttributes string }
	if err := json.Unmarshal([]byte(sent.body), &sums); err != nil || sums.MD5OfMessageAttributes == "" || sums.MD5OfMessageSystemAttributes == "" {
		t.Errorf("%s", sent.body)
	}
	task := s.call(t, "GET /api/tasks/1", "").good(t, 200).Task
	if got, want := string(task.Attributes), `{"a.n":{"type":"Number.int","value":"7"},"b":{"type":"Binary","value":"AAE="},"AWS.AWSTraceHeader":{"type":"String","value":"Root=1"}}`; got != want || task.ShareKey != "g" {
		t.Errorf("a native client sees %s, share key %q", got, task.ShareKey)
	}
	receive := func(names string) sqsMessage {
		t.Helper()
		got := s.sqsDone(t, "ReceiveMessage", mailURL+`,"VisibilityTimeout":0,"AttributeNames":["All"],"MessageAttributeNames":[`+names+`]`).Messages
		if len(got) != 1 {
			t.Fatalf("%+v", got)
		}
		s.sqsDone(t, "ChangeMessageVisibility", fmt.Sprintf(`%s,"ReceiptHandle":%q,"VisibilityTimeout":0`, mailURL, got[0].ReceiptHandle))
		return got[0]
	}
	all := receive(`"All"`)
	if len(all.MessageAttributes) != 2 || string(all.MessageAttributes["b"].BinaryValue) != "\x00\x01" || all.MessageAttributes["a.n"].StringValue != "7" ||
		all.MD5OfMessageAttributes != sums.MD5OfMessageAttributes || all.Attributes["MessageGroupId"] != "g" || all.Attributes["AWSTraceHeader"] != "Root=1" {
		t.Errorf("%+v", all)
	}
	for names, want := range map[string]int{``: 0, `"b"`: 1, `"a.*"`: 1, `".*"`: 2, `"c"`: 0} {
		if got := receive(names); len(got.MessageAttributes) != want || (got.MD5OfMessageAttributes != "") != (want > 0) {
			t.Errorf("%s: %+v", names, got)
		}
	}
	s.sqsDone(t, "PurgeQueue", mailURL)
	s.call(t, "POST /api/tasks", `{"task_type":"mail","params":{"to":1},"attributes":{"a":"x","b":{"type":"Number","value":"1"},"c":[1]}}`).good(t, 201)
	if got := receive(`"All"`); got.Body != `{"to":1}` || len(got.MessageAttributes) != 2 || got.MessageAttributes["b"].DataType != "Number" {
		t.Errorf("%+v", got)
	}
}

// What a native client has submitted is answered as the protocol can carry it, with the sum of that, since SDKs refuse a
// whole answer for a wrong one.
func TestSQS_anyBytes(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	for range 2 {
		s.call(t, "POST /api/tasks", `{"task_type":"mail","payload":"/wBhDg=="}`).good(t, 201) // FF 00 61 0E
	}
	sumOf := func(body string) string { return fmt.Sprintf("%x", md5.Sum([]byte(body))) }
	got := s.sqsDone(t, "ReceiveMessage", mailURL).Messages
	if len(got) != 1 || got[0].Body != "\ufffd\x00a\x0e" || got[0].MD5OfBody != sumOf(got[0].Body) {
		t.Errorf("%+v", got)
	}
	a := doUndescribed(func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, false) }, "POST /000000000000/mail", "Action=ReceiveMessage")
	var form struct {
		Body, MD5OfBody string
	}
	_, text, _ := strings.Cut(a.body, "<Message>")
	text, _, _ = strings.Cut(text, "</Message>")
	if err := xml.Unmarshal([]byte("<Message>"+text+"</Message>"), &form); err != nil || form.Body != "\ufffd\ufffda\ufffd" || form.MD5OfBody != sumOf(form.Body) {
		t.Errorf("%v: %s", err, a.body)
	}
}

func TestSQS_Queues(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withSQS)
	for _, name := range []string{"a1", "a2", "b1"} {
		s.sqsDone(t, "CreateQueue", `"QueueName":"`+name+`"`)
	}
	apply(t, s.core.node.(*nodetest.Node), command.SetType{Type: "a3", Set: fsm.TypePaused, Settings: fsm.TypeSettings{Paused: true}})
	first := s.sqsDone(t, "ListQueues", `"QueueNamePrefix":"a","MaxResults":1`)
	if len(first.QueueURLs) != 1 || !strings.HasSuffix(first.QueueURLs[0], "/a1") || first.NextToken == "" {
		t.Fatalf("%s", first.body)
	}
	second := s.sqsDone(t, "ListQueues", `"QueueNamePrefix":"a","MaxResults":5,"NextToken":"`+first.NextToken+`"`)
	if len(second.QueueURLs) != 1 || !strings.HasSuffix(second.QueueURLs[0], "/a2") || second.NextToken != "" {
		t.Errorf("%s", second.body)
	}
	url := `"QueueUrl":"/0/a1"`
	s.sqsDone(t, "SetQueueAttributes", url+`,"Attributes":{"VisibilityTimeout":"0","DelaySeconds":"3","Policy":""}`)
	a := s.sqsDone(t, "GetQueueAttributes", url+`,"AttributeNames":["VisibilityTimeout","DelaySeconds","RedrivePolicy"]`).Attributes
	if len(a) != 2 || a["VisibilityTimeout"] != "0" || a["DelaySeconds"] != "3" {
		t.Errorf("%v", a)
	}
	if a := s.sqsDone(t, "GetQueueAttributes", url); a.body != "{}" {
		t.Errorf("nothing was asked for, and %s came", a.body)
	}
	s.sqsDone(t, "TagQueue", url+`,"Tags":{"a":"1","b":"2"}`)
	s.sqsDone(t, "UntagQueue", url+`,"TagKeys":["a"]`)
	if tags := s.sqsDone(t, "ListQueueTags", url).Tags; len(tags) != 1 || tags["b"] != "2" {
		t.Errorf("%v", tags)
	}
	s.sqsDone(t, "SendMessage", url+`,"MessageBody":"x","DelaySeconds":0`)
	s.sqsDone(t, "PurgeQueue", url)
	if a := s.sqsDone(t, "GetQueueAttributes", url+`,"AttributeNames":["ApproximateNumberOfMessages"]`).Attributes; a["ApproximateNumberOfMessages"] != "0" {
		t.Errorf("%v", a)
	}
	for _, x := range []struct{ op, params, shape, code string }{
		{"SetQueueAttributes", url + `,"Attributes":{"VisibilityTimeout":"43201"}`, "InvalidAttributeValue", "InvalidAttributeValue"},
		{"SetQueueAttributes", url + `,"Attributes":{"Colour":"1"}`, "InvalidAttributeName", "InvalidAttributeName"},
		{"GetQueueAttributes", url + `,"AttributeNames":["Colour"]`, "InvalidAttributeName", "InvalidAttributeName"},
		{"ReceiveMessage", url + `,"AttributeNames":["Colour"]`, "InvalidAttributeName", "InvalidAttributeName"},
		{"AddPermission", url, "UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation"},
		{"Explode", ``, "UnknownOperationException", "InvalidAction"},
	} {
		s.sqs(t, x.op, x.params).refusedAs(t, 400, x.shape, x.code)
	}
}

// The settings and the tags of a queue outlive a restart, which begins with a snapshot.
func TestSQS_QueuesRestart(t *testing.T) {
	t.Parallel()
	s, node := setup(t, withSQS)
	s.sqsDone(t, "CreateQueue", `"QueueName":"mail","Attributes":{"VisibilityTimeout":"7"},"tags":{"a":"1","b c":"&="}`)
	looks := func() string {
		return s.sqsDone(t, "GetQueueAttributes", mailURL+`,"AttributeNames":["All"]`).body + s.sqsDone(t, "ListQueueTags", mailURL).body
	}
	before := looks()
	snapshot, saved := node.Machine.Snapshot(), bytes.Buffer{}
	if _, err := snapshot.WriteTo(&saved); err != nil {
		t.Fatal(err)
	}
	snapshot.Release()
	restored, err := fsm.ReadSnapshot(&saved)
	if err != nil {
		t.Fatal(err)
	}
	node.Machine = restored
	if after := looks(); after != before || !strings.Contains(after, `"b c":"&="`) {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// A follower passes calls on, and says what is in the way as the protocol has it.
func TestSQS_Follower(t *testing.T) {
	t.Parallel()
	leader, _ := setup(t, withSQS)
	follower := followerOf(t, leader, withSQS)
	follower.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	follower.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`)
	if got := follower.sqsDone(t, "ReceiveMessage", mailURL).Messages; len(got) != 1 {
		t.Errorf("%+v", got)
	}
	// While nothing was sent because there is no leader, a call is held.
	tries := 0
	node := follower.core.node.(*nodetest.Node)
	forward := node.OnForward
	node.OnForward = func(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
		switch tries++; tries {
		case 1:
			return nodes.Passed{}, nodes.ErrNoLeader
		case 2: // the peer port of a node that is starting
			resp.SetStatusCode(fasthttp.StatusServiceUnavailable)
			resp.SetBodyString(`{"success":false,"code":"no_leader"}`)
			return nodes.Passed{}, nil
		}
		return forward(ctx, pass, req, resp)
	}
	follower.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"y"`)
	if tries != 3 {
		t.Errorf("%d tries", tries)
	}
	leader.Drain()
	a := leader.sqs(t, "ReceiveMessage", mailURL)
	a.refusedAs(t, 503, "ServiceUnavailable", "ServiceUnavailable")
	if a.header["X-Amz-Retry-After"] != "1000" || a.header["Retry-After"] != "1" {
		t.Errorf("%v", a.header)
	}
}

// A call that was held for a leader has as long as another then, and is given up when its client has gone.
func TestSQS_held(t *testing.T) {
	t.Parallel()
	leader, _ := setup(t, withSQS)
	leader.sqsDone(t, "CreateQueue", `"QueueName":"mail"`)
	follower := followerOf(t, leader, withSQS, func(c *Config) { c.Wait = sqsHoldLook / 4 })
	node := follower.core.node.(*nodetest.Node)
	forward := node.OnForward
	var deadlines []time.Time
	node.OnForward = func(ctx context.Context, pass nodes.Passing, req *fasthttp.Request, resp *fasthttp.Response) (nodes.Passed, error) {
		until, _ := ctx.Deadline()
		if deadlines = append(deadlines, until); len(deadlines) == 1 {
			return nodes.Passed{}, nodes.ErrNoLeader
		}
		return forward(context.Background(), pass, req, resp)
	}
	follower.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`)
	if len(deadlines) != 2 || deadlines[1].Sub(deadlines[0]) < sqsHoldLook/2 {
		t.Errorf("it had until %v", deadlines)
	}
	for name, hangUp := range conntest.HangUps {
		tried, node := make(chan struct{}), nodetest.New()
		node.Follower = true
		node.OnForward = func(context.Context, nodes.Passing, *fasthttp.Request, *fasthttp.Response) (nodes.Passed, error) {
			close(tried) // once
			return nodes.Passed{}, nodes.ErrNoLeader
		}
		s, _ := setup(t, withSQS, func(c *Config) { c.Node = node })
		conn := dialServer(t, listen(t, s))
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n\r\n{}"); err != nil {
			t.Fatal(err)
		}
		<-tried
		if err := hangUp(conn); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return s.core.port.Open() == 0 })
		if n := scrape(t, s, `claimq_http_requests_total{call="sqs_list_queues",code="gone"}`); n != 1 {
			t.Errorf("client %s: %v calls were given up", name, n)
		}
	}
}

// A node that is starting says so as the protocol has it: anything else ends consumers.
func TestSQS_starting(t *testing.T) {
	t.Parallel()
	p := NewProbes("n1", "v0.0.1", hclog.NewNullLogger())
	p.SQS = true
	ask := func(target, form string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(form))
		if target != "" {
			r.Header.Set(amzTarget, target)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Code != 503 || w.Header().Get("X-Amzn-Query-Error") != "ServiceUnavailable;Receiver" || w.Header().Get("X-Amz-Retry-After") != "1000" || w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
		return w
	}
	if w := ask("AmazonSQS.ReceiveMessage", ""); w.Header().Get("Content-Type") != sqs.TypeJSON || !strings.HasPrefix(w.Body.String(), `{"__type":"com.amazonaws.sqs#ServiceUnavailable","message":"The node is not ready`) {
		t.Errorf("%s", w.Body)
	}
	if w := ask("", "Action=ReceiveMessage"); w.Header().Get("Content-Type") != sqs.TypeXML || !strings.Contains(w.Body.String(), "<Code>ServiceUnavailable</Code>") {
		t.Errorf("%s", w.Body)
	}
}

// What is refused before its body was read is refused as the protocol has it, too.
func TestSQS_Unread(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withSQS)
	addr := listen(t, s)
	send := func(headers string) answer {
		t.Helper()
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(testwait.Patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n"+headers+"\r\n"); err != nil {
			t.Fatal(err)
		}
		return receive(t, bufio.NewReader(conn))
	}
	a := send("X-Amz-Target: AmazonSQS.SendMessage\r\n")
	if a.status != 400 || !strings.Contains(a.body, "com.amazonaws.sqs#BatchRequestTooLong") || a.header["X-Amzn-Query-Error"] != "AWS.SimpleQueueService.BatchRequestTooLong;Sender" {
		t.Errorf("%+v", a)
	}
	if a := send("Content-Type: application/x-www-form-urlencoded\r\n"); a.status != 400 || !strings.Contains(a.body, "<Code>AWS.SimpleQueueService.BatchRequestTooLong</Code>") {
		t.Errorf("%+v", a)
	}
}

// A node with keys lets in who signs with a credential of its file, with its roles and types, and no other.
func TestSQS_Credentials(t *testing.T) {
	t.Parallel()
	app := door.Key{Name: "app", Roles: []string{"producer", "worker"}, AccessKeyID: "APP", Secret: strings.Repeat("s", 20), TaskTypes: []string{"mail"}}
	admin := door.Key{Name: "admin", Role: "operator", AccessKeyID: "ADMIN", Secret: strings.Repeat("t", 20)}
	s, _ := setup(t, withSQS, withKeys(testKey("operator"), app, admin))
	as := func(k door.Key, op, params string) sqsAnswer {
		t.Helper()
		return s.sqs(t, op, params, signed(k, "{"+params+"}")...)
	}
	s.sqs(t, "ListQueues", "").refusedAs(t, 403, "MissingAuthenticationTokenException", "MissingAuthenticationToken")
	s.sqs(t, "ListQueues", "", with("operator")).refusedAs(t, 403, "MissingAuthenticationTokenException", "MissingAuthenticationToken")
	as(door.Key{AccessKeyID: "X", Secret: app.Secret}, "ListQueues", "").refusedAs(t, 403, "UnrecognizedClientException", "InvalidClientTokenId")
	as(door.Key{AccessKeyID: "APP", Secret: admin.Secret}, "ListQueues", "").refusedAs(t, 403, "InvalidSignatureException", "SignatureDoesNotMatch")
	as(app, "CreateQueue", `"QueueName":"mail"`).refusedAs(t, 403, "AccessDeniedException", "AccessDenied")
	for _, name := range []string{"mail", "scan"} {
		if a := as(admin, "CreateQueue", `"QueueName":"`+name+`"`); a.status != 200 {
			t.Fatal(a.body)
		}
	}
	if a := as(app, "CreateQueue", `"QueueName":"mail"`); a.status != 200 { // it is there already
		t.Error(a.body)
	}
	if a := as(app, "SendMessage", mailURL+`,"MessageBody":"x"`); a.status != 200 {
		t.Error(a.body)
	}
	if a := as(app, "ListQueues", ""); len(a.QueueURLs) != 1 {
		t.Errorf("%s", a.body)
	}
	as(app, "SendMessage", `"QueueUrl":"/0/scan","MessageBody":"x"`).refusedAs(t, 400, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue")
	as(app, "DeleteQueue", mailURL).refusedAs(t, 403, "AccessDeniedException", "AccessDenied")
}

// signed returns the headers by which a request to / is signed now.
func signed(k door.Key, body string) []string {
	stamp := time.Now().UTC().Format("20060102T150405Z")
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	sum := func(text string) string {
		s := sha256.Sum256([]byte(text))
		return hex.EncodeToString(s[:])
	}
	scope := stamp[:8] + "/eu/sqs/aws4_request"
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + sum("POST\n/\n\nhost:127.0.0.1:7400\nx-amz-date:"+stamp+"\n\nhost;x-amz-date\n"+sum(body))
	key := []byte("AWS4" + k.Secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return []string{"X-Amz-Date: " + stamp, "Authorization: AWS4-HMAC-SHA256 Credential=" + k.AccessKeyID + "/" + scope +
		", SignedHeaders=host;x-amz-date, Signature=" + hex.EncodeToString(mac(key, text))}
}

// A client that asks before it sends its body is told to: only the body has the operation of a form, and the hash that
// is signed.
func TestSQS_expects(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withSQS)
	conn := dialServer(t, listen(t, s))
	const form = "Action=ListQueues&Version=2012-11-05"
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(form)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if a := receive(t, r); a.status != 100 {
		t.Fatalf("asked: %d, %s", a.status, a.body)
	}
	if _, err := io.WriteString(conn, form); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, r); a.status != 200 || !strings.Contains(a.body, "<ListQueuesResponse") {
		t.Errorf("%d, %s", a.status, a.body)
	}
}

// A node whose endpoint is off says so in the protocol of the call, before it asks for a key or a body. What is no call
// of SQS gets the API's own answers.
func TestSQS_off(t *testing.T) {
	t.Parallel()
	open, _ := setup(t)
	keyed, _ := setup(t, withKeys(testKey("worker", "w")))
	for name, s := range map[string]*Server{"open": open, "with keys": keyed} {
		for _, headers := range [][]string{nil, {"Authorization: AWS4-HMAC-SHA256 Credential=A/20261128/eu/sqs/aws4_request, SignedHeaders=host, Signature=00"}} {
			s.sqs(t, "SendMessage", mailURL+`,"MessageBody":"x"`, headers...).refusedAs(t, 400, "UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation")
		}
		handle := func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, false) }
		a := doUndescribed(handle, "POST /000000000000/mail", "Action=SendMessage&MessageBody=x")
		if a.status != 400 || a.header["Content-Type"] != "text/xml" || !strings.Contains(a.body, "<Code>AWS.SimpleQueueService.UnsupportedOperation</Code>") || !strings.Contains(a.body, "--sqs-enabled") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, body := range []string{"{}", "Action=None"} {
		open.call(t, "POST /", body).refused(t, wire.CodeMethodNotAllowed)
	}
	conn := dialServer(t, listen(t, keyed))
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if a := receive(t, bufio.NewReader(conn)); a.status != 400 || !strings.Contains(a.body, "com.amazonaws.sqs#UnsupportedOperation") {
		t.Errorf("unread: %+v", a)
	}
}
