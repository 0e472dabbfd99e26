package api

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/sqs"
)

// refusalsFile has each way in which a call of SQS is refused, as both protocols say it.
const refusalsFile = "testdata/sqs_refusals.txt"

// refusal is a call that is refused. What is said once is said in both protocols.
type refusal struct {
	op, why string
	params  string // as members of JSON
	by      string // the name of the credential; "": an open server is asked
	inLog   bool   // the state machine refuses it, so that it is replicated
}

// TestSQS_refusals checks the codes, states and texts by which calls are refused, against a file that -update writes, and
// that they have changed nothing.
func TestSQS_refusals(t *testing.T) {
	t.Parallel()
	open, openNode := setup(t, withSQS)
	for _, name := range []string{"mail", "scan"} {
		open.sqsDone(t, "CreateQueue", `"QueueName":"`+name+`","Attributes":{"VisibilityTimeout":"10","MaximumMessageSize":"2048","MessageRetentionPeriod":"60"}`)
	}
	open.sqsDone(t, "CreateQueue", `"QueueName":"mail.fifo","Attributes":{"FifoQueue":"true"}`)
	open.sqsDone(t, "SendMessage", mailURL+`,"MessageBody":"x"`)
	handle := open.sqsDone(t, "ReceiveMessage", mailURL).Messages[0].ReceiptHandle
	open.sqsDone(t, "DeleteMessage", mailURL+`,"ReceiptHandle":"`+handle+`"`)
	credentials := map[string]door.Key{
		"app":    {Name: "app", Roles: []string{"producer", "worker", "operator"}, AccessKeyID: "APP", Secret: strings.Repeat("s", 20), TaskTypes: []string{"scan"}},
		"reader": {Name: "reader", Role: "reader", AccessKeyID: "READER", Secret: strings.Repeat("t", 20)},
		"forged": {Name: "forged", AccessKeyID: "APP", Secret: strings.Repeat("u", 20)},
		"gone":   {Name: "gone", AccessKeyID: "GONE", Secret: strings.Repeat("u", 20)},
		"slow":   limited(door.Key{Name: "slow", Role: "producer", AccessKeyID: "SLOW", Secret: strings.Repeat("v", 20)}, 1),
	}
	keyed, keyedNode := setup(t, withSQS, withKeys(credentials["app"], credentials["reader"], credentials["slow"]))
	slow := `{"QueueUrl":"/0/mail","MessageBody":"x"}`
	keyed.sqs(t, "SendMessage", slow[1:len(slow)-1], signed(credentials["slow"], slow)...)

	var b strings.Builder
	b.WriteString("# How calls of SQS are refused: go test ./api -run TestSQS_refusals -update writes this file.\n")
	for _, r := range sqsRefusals(handle) {
		s, node := open, openNode
		if r.by != "" {
			s, node = keyed, keyedNode
		}
		fmt.Fprintf(&b, "\n%s: %s\n", r.op, r.why)
		before := [2]any{node.Machine.Counts(), len(node.Proposed)}
		for _, query := range []bool{false, true} {
			if answer := s.refusalOf(t, r, credentials, query); answer != "" {
				b.WriteString(answer + "\n")
			}
		}
		if r.inLog {
			before[1] = len(node.Proposed)
		}
		if after := [2]any{node.Machine.Counts(), len(node.Proposed)}; after != before {
			t.Errorf("%s, %s: the state was %v and is %v", r.op, r.why, before, after)
		}
	}
	if *update {
		if err := os.WriteFile(refusalsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(refusalsFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s, which -update writes, differs; it is now:\n%s", refusalsFile, got)
	}
}

// refusalOf makes the call by one of the protocols, and returns its refusal as a line; "": it is not for that protocol.
func (s *Server) refusalOf(t *testing.T, r refusal, credentials map[string]door.Key, query bool) string {
	t.Helper()
	form, isForm := strings.CutPrefix(r.params, "form:")
	body, isJSON := strings.CutPrefix(r.params, "json:")
	if isForm && !query || isJSON && query {
		return ""
	}
	var headers []string
	switch {
	case query:
		if !isForm {
			form = formOf(t, r.op, r.params).Encode()
		}
		body = "Action=" + r.op + "&Version=2012-11-05&" + form
	default:
		headers = []string{"X-Amz-Target: AmazonSQS." + r.op}
		if !isJSON {
			body = "{" + r.params + "}"
		}
	}
	if k, ok := credentials[r.by]; ok {
		headers = append(headers, signed(k, body)...)
	}
	a := doUndescribed(func(ctx *fasthttp.RequestCtx) { s.core.handle(ctx, false) }, "POST /", body, headers...)
	if a.header["X-Amzn-Requestid"] == "" || a.status >= 500 && r.op != "ReceiveMessage" {
		t.Errorf("%s, %s: %+v", r.op, r.why, a)
	}
	if query {
		return "  Query " + refusalInXML(t, r, a)
	}
	return "  JSON  " + refusalInJSON(t, r, a)
}

func refusalInJSON(t *testing.T, r refusal, a answer) string {
	t.Helper()
	var got struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
		Failed  []struct {
			Code, Message string
			SenderFault   bool
		}
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Errorf("%s, %s: %v: %s", r.op, r.why, err, a.body)
	}
	if a.status == 200 && len(got.Failed) == 1 {
		f := got.Failed[0]
		return fmt.Sprintf("200 Failed %s, SenderFault %v: %s", f.Code, f.SenderFault, f.Message)
	}
	if got.Type == "" || got.Message == "" || a.status < 400 {
		t.Errorf("%s, %s: %d %s", r.op, r.why, a.status, a.body)
	}
	return fmt.Sprintf("%d %s, %s: %s", a.status, got.Type, a.header["X-Amzn-Query-Error"], got.Message)
}

func refusalInXML(t *testing.T, r refusal, a answer) string {
	t.Helper()
	type failure struct {
		Type, Code, Message string
		SenderFault         bool
	}
	var got struct {
		XMLName   xml.Name
		Error     failure
		RequestID string `xml:"RequestId"`
		Result    struct {
			Failed []failure `xml:"BatchResultErrorEntry"`
		} `xml:",any"`
	}
	if err := xml.Unmarshal([]byte(a.body), &got); err != nil {
		t.Errorf("%s, %s: %v: %s", r.op, r.why, err, a.body)
	}
	if a.status == 200 && len(got.Result.Failed) == 1 {
		f := got.Result.Failed[0]
		return fmt.Sprintf("200 Failed %s, SenderFault %v: %s", f.Code, f.SenderFault, f.Message)
	}
	if got.XMLName.Local != "ErrorResponse" || got.Error.Code == "" || got.Error.Message == "" || got.RequestID == "" || a.status < 400 {
		t.Errorf("%s, %s: %d %s", r.op, r.why, a.status, a.body)
	}
	return fmt.Sprintf("%d %s;%s: %s", a.status, got.Error.Code, got.Error.Type, got.Error.Message)
}

// formOf returns the parameters of a call as Query has them: lists and maps are numbered, and have another name.
func formOf(t *testing.T, op, params string) url.Values {
	t.Helper()
	var members map[string]any
	d := json.NewDecoder(strings.NewReader("{" + params + "}"))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		t.Fatalf("%s: %v: %s", op, err, params)
	}
	form := url.Values{}
	addForm(form, op, "", members)
	return form
}

func addForm(form url.Values, op, prefix string, v any) {
	lists := map[string]string{
		"Entries": op + "RequestEntry", "AttributeNames": "AttributeName", "MessageAttributeNames": "MessageAttributeName",
		"MessageSystemAttributeNames": "MessageSystemAttributeName", "TagKeys": "TagKey",
	}
	objects := map[string]string{
		"Attributes": "Attribute", "MessageAttributes": "MessageAttribute", "MessageSystemAttributes": "MessageSystemAttribute", "Tags": "Tag", "tags": "Tag",
	}
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			of, isMap := item.(map[string]any)
			if objects[name] == "" || !isMap {
				if lists[name] != "" {
					name = lists[name]
				}
				addForm(form, op, prefix+name, item)
				continue
			}
			key := "Name"
			if objects[name] == "Tag" {
				key = "Key"
			}
			for i, k := range slices.Sorted(maps.Keys(of)) {
				at := prefix + objects[name] + "." + strconv.Itoa(i+1) + "."
				form.Set(at+key, k)
				if within, ok := of[k].(map[string]any); ok {
					addForm(form, op, at+"Value.", within)
				} else {
					form.Set(at+"Value", fmt.Sprint(of[k]))
				}
			}
		}
	case []any:
		for i, item := range v {
			at := prefix + "." + strconv.Itoa(i+1)
			if _, isMap := item.(map[string]any); isMap {
				at += "."
			}
			addForm(form, op, at, item)
		}
	default:
		form.Set(prefix, fmt.Sprint(v))
	}
}

// sqsRefusals returns the calls. handle is the receipt handle of a deleted message of the queue mail.
func sqsRefusals(handle string) []refusal {
	all := commonRefusals()
	for _, of := range []func(string) []refusal{queueRefusals, messageRefusals, batchRefusals} {
		all = append(all, of(handle)...)
	}
	slices.SortStableFunc(all, func(a, b refusal) int { return strings.Compare(a.op, b.op) })
	return all
}

// commonRefusals are those of access, of requests that cannot be read, and of the queue that is named.
func commonRefusals() []refusal {
	all := []refusal{
		{op: "Explode", why: "an operation that is not there"},
		{op: "", why: "no operation"},
		{op: "ListQueues", why: "no JSON", params: "json:QueueNamePrefix=a"},
		{op: "ListQueues", why: "a list", params: "json:[]"},
		{op: "ListQueues", why: "more behind the object", params: "json:{} {}"},
		{op: "ListQueues", why: "half of a pair", params: `json:{"QueueNamePrefix":"\ud800"}`},
		{op: "ListQueues", why: "invalid UTF-8", params: "json:{\"QueueNamePrefix\":\"\xff\"}"},
		{op: "ListQueues", why: "too deep", params: "json:" + strings.Repeat(`{"a":`, 12) + "1" + strings.Repeat("}", 12)},
		{op: "ListQueues", why: "half of an escape", params: "form:QueueNamePrefix=%2"},
		{op: "ListQueues", why: "invalid UTF-8", params: "form:QueueNamePrefix=%ff"},
		{op: "ListQueues", why: "a parameter twice", params: "form:QueueNamePrefix=a&QueueNamePrefix=b"},
		{op: "ListQueues", why: "no signature", by: "nobody"},
		{op: "ListQueues", why: "an unknown access key id", by: "gone"},
		{op: "ListQueues", why: "another secret", by: "forged"},
		{op: "SendMessage", why: "more calls than the rate of the credential", params: `"QueueUrl":"/0/mail","MessageBody":"x"`, by: "slow"},
		{op: "ReceiveMessage", why: "more calls than the rate of the credential", params: `"QueueUrl":"/0/mail"`, by: "slow"},
	}
	for op := range sqs.Ops {
		name := op.String()
		if sqsRoles[op] != door.EveryRole {
			all = append(all, refusal{op: name, why: "without the role", params: `"QueueUrl":"/0/scan"`, by: "reader"})
		}
		switch op {
		case sqs.CreateQueue, sqs.GetQueueURL, sqs.ListQueues, sqs.ListMessageMoveTasks, sqs.StartMessageMoveTask, sqs.CancelMessageMoveTask:
			continue // these name no queue by URL
		}
		rest := map[sqs.Op]string{
			sqs.SendMessage: `,"MessageBody":"x"`, sqs.DeleteMessage: `,"ReceiptHandle":"x"`, sqs.ChangeMessageVisibility: `,"ReceiptHandle":"x","VisibilityTimeout":1`,
			sqs.SendMessageBatch: `,"Entries":[{"Id":"a","MessageBody":"x"}]`, sqs.DeleteMessageBatch: `,"Entries":[{"Id":"a","ReceiptHandle":"x"}]`,
			sqs.ChangeMessageVisibilityBatch: `,"Entries":[{"Id":"a","ReceiptHandle":"x","VisibilityTimeout":1}]`,
			sqs.TagQueue:                     `,"Tags":{"a":"b"}`, sqs.UntagQueue: `,"TagKeys":["a"]`,
		}[op]
		all = append(all,
			refusal{op: name, why: "no queue", params: strings.TrimPrefix(rest, ",")},
			refusal{op: name, why: "a queue that is not there", params: `"QueueUrl":"http://127.0.0.1:7400/000000000000/none"` + rest},
			refusal{op: name, why: "a name that no queue has", params: `"QueueUrl":"/0/a:b"` + rest},
			refusal{op: name, why: "a list for the queue", params: `"QueueUrl":["/0/mail"]` + rest},
			refusal{op: name, why: "the queue of another tenant", params: `"QueueUrl":"/0/mail"` + rest, by: "app"},
		)
	}
	return all
}

func queueRefusals(string) []refusal {
	tags := func(n, size int) string {
		of := make([]string, n)
		for i := range of {
			of[i] = fmt.Sprintf(`"t%02d":"%s"`, i, strings.Repeat("v", size))
		}
		return "{" + strings.Join(of, ",") + "}"
	}
	attributes := func(name, value string) string {
		return `"QueueUrl":"/0/mail","Attributes":{"` + name + `":"` + value + `"}`
	}
	return []refusal{
		{op: "CreateQueue", why: "no name"},
		{op: "CreateQueue", why: "an empty name", params: `"QueueName":""`},
		{op: "CreateQueue", why: "a long name", params: `"QueueName":"` + strings.Repeat("a", 81) + `"`},
		{op: "CreateQueue", why: "a name with a dot", params: `"QueueName":"a.b"`},
		{op: "CreateQueue", why: "an unknown attribute", params: `"QueueName":"new","Attributes":{"Colour":"red"}`},
		{op: "CreateQueue", why: "a number out of bounds", params: `"QueueName":"new","Attributes":{"DelaySeconds":"901"}`},
		{op: "CreateQueue", why: "a list for the attributes", params: `"QueueName":"new","Attributes":["DelaySeconds"]`},
		{op: "CreateQueue", why: "a policy", params: `"QueueName":"new","Attributes":{"Policy":"{}"}`},
		{op: "CreateQueue", why: "a key of KMS", params: `"QueueName":"new","Attributes":{"KmsMasterKeyId":"k"}`},
		{op: "CreateQueue", why: "51 tags", params: `"QueueName":"new","tags":` + tags(51, 1)},
		{op: "CreateQueue", why: "tags of more than 8 KiB", params: `"QueueName":"new","tags":` + tags(50, 200)},
		{op: "CreateQueue", why: "another value than that of the queue", params: `"QueueName":"mail","Attributes":{"VisibilityTimeout":"11"}`},
		{op: "CreateQueue", why: "a tag twice", params: `json:{"QueueName":"new","tags":{"a":"1","a":"2"}}`},
		{op: "CreateQueue", why: "a tag twice", params: `form:QueueName=new&Tag.1.Key=a&Tag.1.Value=1&Tag.2.Key=a&Tag.2.Value=2`},
		{op: "GetQueueUrl", why: "no name"},
		{op: "GetQueueUrl", why: "a queue that is not there", params: `"QueueName":"none"`},
		{op: "GetQueueUrl", why: "the queue of another tenant", params: `"QueueName":"mail"`, by: "app"},
		{op: "GetQueueAttributes", why: "an unknown attribute", params: `"QueueUrl":"/0/mail","AttributeNames":["Colour"]`},
		{op: "GetQueueAttributes", why: "a text for the names", params: `json:{"QueueUrl":"/0/mail","AttributeNames":"All"}`},
		{op: "ListQueues", why: "0 results", params: `"MaxResults":0`},
		{op: "ListQueues", why: "1,001 results", params: `"MaxResults":1001`},
		{op: "ListQueues", why: "a token without a number of results", params: `"NextToken":"bWFpbA"`},
		{op: "ListQueues", why: "a forged token", params: `"NextToken":"!","MaxResults":1`},
		{op: "ListQueues", why: "a token that names no queue", params: `"NextToken":"aaaa","MaxResults":1`},
		{op: "SetQueueAttributes", why: "an unknown attribute", params: attributes("Colour", "red")},
		{op: "SetQueueAttributes", why: "a long visibility timeout", params: attributes("VisibilityTimeout", "43201")},
		{op: "SetQueueAttributes", why: "no number", params: attributes("VisibilityTimeout", "long")},
		{op: "SetQueueAttributes", why: "a short retention", params: attributes("MessageRetentionPeriod", "59")},
		{op: "SetQueueAttributes", why: "a small message", params: attributes("MaximumMessageSize", "1023")},
		{op: "SetQueueAttributes", why: "a long wait", params: attributes("ReceiveMessageWaitTimeSeconds", "21")},
		{op: "SetQueueAttributes", why: "neither true nor false", params: attributes("SqsManagedSseEnabled", "yes")},
		{op: "SetQueueAttributes", why: "a policy", params: attributes("Policy", "all")},
		{op: "TagQueue", why: "no tags", params: `"QueueUrl":"/0/mail"`},
		{op: "TagQueue", why: "51 tags", params: `"QueueUrl":"/0/mail","Tags":` + tags(51, 1)},
		{op: "TagQueue", why: "a tag without a key", params: `"QueueUrl":"/0/mail","Tags":{"":"x"}`},
		{op: "TagQueue", why: "a key of 129 characters", params: `"QueueUrl":"/0/mail","Tags":{"` + strings.Repeat("é", 129) + `":"x"}`},
		{op: "TagQueue", why: "a value of 257 characters", params: `"QueueUrl":"/0/mail","Tags":{"a":"` + strings.Repeat("é", 257) + `"}`},
		{op: "TagQueue", why: "a character that XML cannot carry", params: `json:{"QueueUrl":"/0/mail","Tags":{"a":"\u0001"}}`},
		{op: "CreateQueue", why: "a tag without a key", params: `"QueueName":"new","tags":{"":"x"}`},
		{op: "UntagQueue", why: "no tags", params: `"QueueUrl":"/0/mail"`},
		{op: "CreateQueue", why: "a FIFO name without FifoQueue", params: `"QueueName":"new.fifo"`},
		{op: "CreateQueue", why: "FifoQueue without a FIFO name", params: `"QueueName":"new","Attributes":{"FifoQueue":"true"}`},
		{op: "SetQueueAttributes", why: "an attribute of FIFO queues", params: attributes("DeduplicationScope", "queue")},
		{op: "SetQueueAttributes", why: "a FIFO queue that is to be none", params: `"QueueUrl":"/0/mail.fifo","Attributes":{"FifoQueue":"false"}`},
		{op: "SetQueueAttributes", why: "an unknown scope", params: `"QueueUrl":"/0/mail.fifo","Attributes":{"DeduplicationScope":"all"}`},
		{op: "StartMessageMoveTask", why: "no source"},
		{op: "StartMessageMoveTask", why: "a source that is no ARN", params: `"SourceArn":"mail"`},
		{op: "StartMessageMoveTask", why: "a source that is not there", params: `"SourceArn":"arn:aws:sqs::0:none"`},
		{op: "StartMessageMoveTask", why: "a source without dead letters", params: `"SourceArn":"arn:aws:sqs::0:mail"`},
		{op: "StartMessageMoveTask", why: "the queue of another tenant", params: `"SourceArn":"arn:aws:sqs::0:mail"`, by: "app"},
		{op: "StartMessageMoveTask", why: "0 messages a second", params: `"SourceArn":"arn:aws:sqs::0:mail","MaxNumberOfMessagesPerSecond":0`},
		{op: "ListMessageMoveTasks", why: "no source"},
		{op: "ListMessageMoveTasks", why: "a source that is not there", params: `"SourceArn":"arn:aws:sqs::0:none"`},
		{op: "ListMessageMoveTasks", why: "11 results", params: `"SourceArn":"arn:aws:sqs::0:mail","MaxResults":11`},
		{op: "CancelMessageMoveTask", why: "no handle"},
		{op: "CancelMessageMoveTask", why: "a forged handle", params: `"TaskHandle":"x"`},
		{op: "CancelMessageMoveTask", why: "a handle of no task", params: `"TaskHandle":"NyBtYWls"`, inLog: true},
		{op: "AddPermission", why: "never", params: `"QueueUrl":"/0/mail","Label":"l"`},
		{op: "RemovePermission", why: "never", params: `"QueueUrl":"/0/mail","Label":"l"`},
	}
}

func messageRefusals(handle string) []refusal {
	send := func(rest string) string { return `"QueueUrl":"/0/mail","MessageBody":"x",` + rest }
	body := func(text string) string { return `"QueueUrl":"/0/mail","MessageBody":"` + text + `"` }
	attribute := func(name, of string) string { return send(`"MessageAttributes":{"` + name + `":{` + of + `}}`) }
	number := func(name, n string) string { return `"QueueUrl":"/0/mail","` + name + `":` + n }
	fifo := func(rest string) refusal {
		return refusal{op: "SendMessage", params: `"QueueUrl":"/0/mail.fifo","MessageBody":"x"` + rest}
	}
	noGroup, noDedup, delayed := fifo(`,"MessageDeduplicationId":"1"`), fifo(`,"MessageGroupId":"a"`), fifo(`,"MessageGroupId":"a","MessageDeduplicationId":"1","DelaySeconds":1`)
	noGroup.why, noDedup.why, delayed.why = "FIFO without a group", "FIFO without a deduplication id", "FIFO with a delay"
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, fmt.Sprintf(`"a%02d":{"DataType":"String","StringValue":"v"}`, i))
	}
	return []refusal{
		noGroup, noDedup, delayed,
		{op: "SendMessage", why: "no body", params: `"QueueUrl":"/0/mail"`},
		{op: "SendMessage", why: "an empty body", params: body("")},
		{op: "SendMessage", why: "a character that XML cannot carry", params: body(`a\u0000`)},
		{op: "SendMessage", why: "U+FFFF", params: body(`\uffff`)},
		{op: "SendMessage", why: "longer than the queue takes", params: body(strings.Repeat("x", 2_049))},
		{op: "SendMessage", why: "longer than 1 MiB", params: body(strings.Repeat("x", 1<<20+1))},
		{op: "SendMessage", why: "a list for the body", params: `json:{"QueueUrl":"/0/mail","MessageBody":["x"]}`},
		{op: "SendMessage", why: "a negative delay", params: send(`"DelaySeconds":-1`)},
		{op: "SendMessage", why: "a long delay", params: send(`"DelaySeconds":901`)},
		{op: "SendMessage", why: "a fraction", params: send(`"DelaySeconds":1.5`)},
		{op: "SendMessage", why: "a text for a number", params: send(`"DelaySeconds":"soon"`)},
		{op: "SendMessage", why: "a number beyond 64 bits", params: send(`"DelaySeconds":99999999999999999999`)},
		{op: "SendMessage", why: "a group with a space", params: send(`"MessageGroupId":"a b"`)},
		{op: "SendMessage", why: "a long group", params: send(`"MessageGroupId":"` + strings.Repeat("g", 129) + `"`)},
		{op: "SendMessage", why: "deduplication in a standard queue", params: send(`"MessageDeduplicationId":"d"`)},
		{op: "SendMessage", why: "a name with a space", params: attribute("a b", `"DataType":"String","StringValue":"v"`)},
		{op: "SendMessage", why: "a reserved name", params: attribute("AWS.a", `"DataType":"String","StringValue":"v"`)},
		{op: "SendMessage", why: "a long name", params: attribute(strings.Repeat("n", 257), `"DataType":"String","StringValue":"v"`)},
		{op: "SendMessage", why: "no type", params: attribute("a", `"StringValue":"v"`)},
		{op: "SendMessage", why: "an unknown type", params: attribute("a", `"DataType":"Text","StringValue":"v"`)},
		{op: "SendMessage", why: "no value", params: attribute("a", `"DataType":"String"`)},
		{op: "SendMessage", why: "an empty value", params: attribute("a", `"DataType":"String","StringValue":""`)},
		{op: "SendMessage", why: "a character that XML cannot carry, in a value", params: attribute("a", `"DataType":"String","StringValue":"\u0001"`)},
		{op: "SendMessage", why: "no number", params: attribute("a", `"DataType":"Number","StringValue":"v"`)},
		{op: "SendMessage", why: "no base64", params: attribute("a", `"DataType":"Binary","BinaryValue":"!"`)},
		{op: "SendMessage", why: "11 attributes", params: send(`"MessageAttributes":{` + strings.Join(eleven, ",") + `}`)},
		{op: "SendMessage", why: "an attribute twice", params: `json:{` + send(`"MessageAttributes":{`+eleven[0]+`,`+eleven[0]+`}`) + `}`},
		{op: "SendMessage", why: "an unknown system attribute", params: send(`"MessageSystemAttributes":{"a":{"DataType":"String","StringValue":"v"}}`)},
		{op: "ReceiveMessage", why: "0 messages", params: number("MaxNumberOfMessages", "0")},
		{op: "ReceiveMessage", why: "11 messages", params: number("MaxNumberOfMessages", "11")},
		{op: "ReceiveMessage", why: "a negative wait", params: number("WaitTimeSeconds", "-1")},
		{op: "ReceiveMessage", why: "a long wait", params: number("WaitTimeSeconds", "21")},
		{op: "ReceiveMessage", why: "a long visibility timeout", params: number("VisibilityTimeout", "43201")},
		{op: "ReceiveMessage", why: "an unknown attribute", params: `"QueueUrl":"/0/mail","AttributeNames":["Colour"]`},
		{op: "ReceiveMessage", why: "an attempt id with a space", params: number("ReceiveRequestAttemptId", `"a b"`)},
		{op: "DeleteMessage", why: "no handle", params: `"QueueUrl":"/0/mail"`},
		{op: "DeleteMessage", why: "a forged handle", params: `"QueueUrl":"/0/mail","ReceiptHandle":"forged"`},
		{op: "DeleteMessage", why: "the handle of another queue", params: `"QueueUrl":"/0/scan","ReceiptHandle":"` + handle + `"`},
		{op: "ChangeMessageVisibility", why: "no handle", params: number("VisibilityTimeout", "1")},
		{op: "ChangeMessageVisibility", why: "no timeout", params: `"QueueUrl":"/0/mail","ReceiptHandle":"` + handle + `"`},
		{op: "ChangeMessageVisibility", why: "a long timeout", params: `"QueueUrl":"/0/mail","VisibilityTimeout":43201,"ReceiptHandle":"` + handle + `"`},
		{op: "ChangeMessageVisibility", why: "a forged handle", params: `"QueueUrl":"/0/mail","VisibilityTimeout":1,"ReceiptHandle":"forged"`},
		{op: "ChangeMessageVisibility", why: "a message that was deleted", params: `"QueueUrl":"/0/mail","VisibilityTimeout":1,"ReceiptHandle":"` + handle + `"`, inLog: true},
	}
}

func batchRefusals(handle string) []refusal {
	var all []refusal
	for _, x := range []struct{ op, good, bad, why string }{
		{"SendMessageBatch", `"MessageBody":"x"`, `"MessageBody":""`, "an empty body"},
		{"DeleteMessageBatch", `"ReceiptHandle":"` + handle + `"`, `"ReceiptHandle":"forged"`, "a forged handle"},
		{"ChangeMessageVisibilityBatch", `"ReceiptHandle":"` + handle + `","VisibilityTimeout":1`, `"ReceiptHandle":"forged","VisibilityTimeout":1`, "a forged handle"},
	} {
		entries := func(ids ...string) string {
			of := make([]string, len(ids))
			for i, id := range ids {
				of[i] = `{"Id":"` + id + `",` + x.good + `}`
			}
			return `"QueueUrl":"/0/mail","Entries":[` + strings.Join(of, ",") + `]`
		}
		all = append(all,
			refusal{op: x.op, why: "no entries", params: entries()},
			refusal{op: x.op, why: "11 entries", params: entries("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k")},
			refusal{op: x.op, why: "an id twice", params: entries("a", "a")},
			refusal{op: x.op, why: "an empty id", params: entries("")},
			refusal{op: x.op, why: "an id with a space", params: entries("a b")},
			refusal{op: x.op, why: "a long id", params: entries(strings.Repeat("i", 81))},
			refusal{op: x.op, why: "an entry with " + x.why, params: `"QueueUrl":"/0/mail","Entries":[{"Id":"a",` + x.bad + `}]`},
		)
	}
	half := strings.Repeat("x", 1<<19)
	return append(all,
		refusal{op: "SendMessageBatch", why: "longer than 1 MiB", params: `"QueueUrl":"/0/mail","Entries":[{"Id":"a","MessageBody":"` + half + `"},{"Id":"b","MessageBody":"` + half + `x"}]`},
		refusal{op: "ChangeMessageVisibilityBatch", why: "a message that was deleted", params: `"QueueUrl":"/0/mail","Entries":[{"Id":"a","VisibilityTimeout":1,"ReceiptHandle":"` + handle + `"}]`, inLog: true},
	)
}
