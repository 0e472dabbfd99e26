package sqs

import (
	"crypto/md5"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"unicode/utf8"
)

func answerOf(op Op, query bool, a Answer) string {
	return string(a.Append(nil, &Head{Op: op, Query: query}, []byte("r1")))
}

// The same answer in both forms. What is empty is absent, but both lists of a batch in JSON.
func TestAnswer(t *testing.T) {
	t.Parallel()
	attributes := []Attribute{{"b", "Binary", []byte{0, 1}}, {"s", "String.x", []byte("<v>")}}
	for _, x := range []struct {
		name      string
		op        Op
		a         Answer
		json, xml string // of xml, the result
	}{
		{"nothing", DeleteMessage, Answer{}, `{}`, ``},
		{"no messages", ReceiveMessage, Answer{}, `{}`, `<ReceiveMessageResult></ReceiveMessageResult>`},
		{"a URL", CreateQueue, Answer{QueueURL: "http://h/0/q"}, `{"QueueUrl":"http://h/0/q"}`, `<CreateQueueResult><QueueUrl>http://h/0/q</QueueUrl></CreateQueueResult>`},
		{"URLs", ListQueues, Answer{QueueURLs: []string{"a", "b"}, NextToken: "t"}, `{"QueueUrls":["a","b"],"NextToken":"t"}`, `<ListQueuesResult><QueueUrl>a</QueueUrl><QueueUrl>b</QueueUrl><NextToken>t</NextToken></ListQueuesResult>`},
		{"no URLs", ListQueues, Answer{}, `{}`, `<ListQueuesResult></ListQueuesResult>`},
		{"attributes", GetQueueAttributes, Answer{Attributes: []Pair{{"a", "1"}}}, `{"Attributes":{"a":"1"}}`, `<GetQueueAttributesResult><Attribute><Name>a</Name><Value>1</Value></Attribute></GetQueueAttributesResult>`},
		{"tags", ListQueueTags, Answer{Tags: []Pair{{"a", ""}, {"b", "2"}}}, `{"Tags":{"a":"","b":"2"}}`, `<ListQueueTagsResult><Tag><Key>a</Key><Value></Value></Tag><Tag><Key>b</Key><Value>2</Value></Tag></ListQueueTagsResult>`},
		{
			"a message", ReceiveMessage,
			Answer{Messages: []Message{{ID: "i", Handle: "h", Body: []byte("a\r&\n\""), System: []Pair{{"SentTimestamp", "5"}}, Attributes: attributes}}},
			`{"Messages":[{"MessageId":"i","ReceiptHandle":"h","MD5OfBody":"` + md5OfBody([]byte("a\r&\n\"")) + `","Body":"a\r&\n\"","Attributes":{"SentTimestamp":"5"},"MD5OfMessageAttributes":"` + md5OfAttributes(attributes) + `","MessageAttributes":{"b":{"BinaryValue":"AAE=","DataType":"Binary"},"s":{"StringValue":"<v>","DataType":"String.x"}}}]}`,
			`<ReceiveMessageResult><Message><MessageId>i</MessageId><ReceiptHandle>h</ReceiptHandle><MD5OfBody>` + md5OfBody([]byte("a\r&\n\"")) + `</MD5OfBody><Body>a&#xD;&amp;` + "\n" + `&quot;</Body><Attribute><Name>SentTimestamp</Name><Value>5</Value></Attribute><MD5OfMessageAttributes>` + md5OfAttributes(attributes) + `</MD5OfMessageAttributes><MessageAttribute><Name>b</Name><Value><BinaryValue>AAE=</BinaryValue><DataType>Binary</DataType></Value></MessageAttribute><MessageAttribute><Name>s</Name><Value><StringValue>&lt;v&gt;</StringValue><DataType>String.x</DataType></Value></MessageAttribute></Message></ReceiveMessageResult>`,
		},
		{"sent", SendMessage, Answer{Done: []Done{{MessageID: "i", BodyMD5: md5.Sum(nil), AttributesMD5: "n"}}}, `{"MD5OfMessageBody":"` + md5OfBody(nil) + `","MD5OfMessageAttributes":"n","MessageId":"i"}`, `<SendMessageResult><MD5OfMessageBody>` + md5OfBody(nil) + `</MD5OfMessageBody><MD5OfMessageAttributes>n</MD5OfMessageAttributes><MessageId>i</MessageId></SendMessageResult>`},
		{
			"a batch", DeleteMessageBatch,
			Answer{Done: []Done{{ID: "1"}, {ID: "2", Bad: badHandle("x")}}},
			`{"Successful":[{"Id":"1"}],"Failed":[{"Id":"2","SenderFault":true,"Code":"ReceiptHandleIsInvalid","Message":"The input receipt handle \"x\" is not a valid receipt handle."}]}`,
			`<DeleteMessageBatchResult><DeleteMessageBatchResultEntry><Id>1</Id></DeleteMessageBatchResultEntry><BatchResultErrorEntry><Id>2</Id><SenderFault>true</SenderFault><Code>ReceiptHandleIsInvalid</Code><Message>The input receipt handle &quot;x&quot; is not a valid receipt handle.</Message></BatchResultErrorEntry></DeleteMessageBatchResult>`,
		},
		{"a batch that was done", SendMessageBatch, Answer{Done: []Done{{ID: "1", MessageID: "i", BodyMD5: md5.Sum(nil)}}}, `{"Successful":[{"Id":"1","MD5OfMessageBody":"` + md5OfBody(nil) + `","MessageId":"i"}],"Failed":[]}`, `<SendMessageBatchResult><SendMessageBatchResultEntry><Id>1</Id><MD5OfMessageBody>` + md5OfBody(nil) + `</MD5OfMessageBody><MessageId>i</MessageId></SendMessageBatchResultEntry></SendMessageBatchResult>`},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			if got := answerOf(x.op, false, x.a); got != x.json || !json.Valid([]byte(got)) {
				t.Errorf("%s\nwant %s", got, x.json)
			}
			name := x.op.String() + "Response"
			want := `<?xml version="1.0"?><` + name + ` xmlns="http://queue.amazonaws.com/doc/2012-11-05/">` + x.xml + `<ResponseMetadata><RequestId>r1</RequestId></ResponseMetadata></` + name + `>`
			got := answerOf(x.op, true, x.a)
			if got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
			var any struct{}
			if err := xml.Unmarshal([]byte(got), &any); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	e := noQueue(false)
	if got, want := string(e.Append(nil, false, nil)), `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`; got != want {
		t.Error(got)
	}
	if got, want := e.QueryError(), "AWS.SimpleQueueService.NonExistentQueue;Sender"; got != want {
		t.Error(got)
	}
	want := `<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>AWS.SimpleQueueService.NonExistentQueue</Code><Message>The specified queue does not exist for this wsdl version.</Message><Detail/></Error><RequestId>r1</RequestId></ErrorResponse>`
	if got := string(noQueue(true).Append(nil, true, []byte("r1"))); got != want {
		t.Error(got)
	}
	if got := Unavailable("x").QueryError(); got != "ServiceUnavailable;Receiver" {
		t.Error(got)
	}
	if got := Throttled("x"); got.Status != 403 || !got.Retries() {
		t.Errorf("%+v", got)
	}
}

// The sums are those that another implementation makes (Python's hashlib, by the description).
func TestMD5(t *testing.T) {
	t.Parallel()
	if got := md5OfBody([]byte("hello")); got != "5d41402abc4b2a76b9719d911017c592" {
		t.Error(got)
	}
	for want, attributes := range map[string][]Attribute{
		"a512aac9938034acb0b3c3d965944bf1": {{"a", "String", []byte("x")}},
		"7e360c9e21b910043fc176c59dd1d421": {{"B", "Number.float", []byte("1.5")}, {"a", "Binary", []byte{0, 255}}},
	} {
		if got := md5OfAttributes(attributes); got != want {
			t.Errorf("%v: %s", attributes, got)
		}
	}
}

// Any text comes back out of both forms, but what XML cannot carry.
func FuzzAnswer(f *testing.F) {
	f.Add("a<&>\"'\r\n\t €😀")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || s == "" || strings.ContainsRune(s, utf8.RuneError) {
			return
		}
		a := Answer{QueueURL: s}
		var fromJSON struct {
			URL string `json:"QueueUrl"`
		}
		if err := json.Unmarshal([]byte(answerOf(CreateQueue, false, a)), &fromJSON); err != nil || fromJSON.URL != s {
			t.Errorf("%q, %v", fromJSON, err)
		}
		var fromXML struct {
			URL string `xml:"CreateQueueResult>QueueUrl"`
		}
		err := xml.Unmarshal([]byte(answerOf(CreateQueue, true, a)), &fromXML)
		if err != nil || validXML(s) && fromXML.URL != s {
			t.Errorf("%q, %v", fromXML, err)
		}
	})
}

// A character that XML cannot carry is found wherever it is, and no other one is taken for it.
func TestValidXML(t *testing.T) {
	t.Parallel()
	around := strings.Repeat("x", 9) + "é" + strings.Repeat("\n", 8)
	for r := range rune(0x110000) {
		if r > 0x300 && r < 0xF000 || r > 0x10010 { // others are as those below
			continue
		}
		for at := range len(around) {
			if c := around[at]; c >= 0x80 && c < 0xC0 {
				continue // within a character
			}
			text := around[:at] + string(r) + around[at:]
			if want := utf8.ValidRune(r) && inXML(r) || !utf8.ValidRune(r); validXML(text) != want || validXML([]byte(text)) != want {
				t.Fatalf("%q: %v", text, !want)
			}
		}
	}
}

// What XML would change is written as a reference, and what it cannot carry as the replacement character; the rest stays.
func TestAppendXML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "",
		"plain text\t\n":         "plain text\t\n",
		"<a b=\"c\">&\r":         "&lt;a b=&quot;c&quot;&gt;&amp;&#xD;",
		"end<":                   "end&lt;",
		"Grüße, 世界 \U0001F600":   "Grüße, 世界 \U0001F600",
		"\x00a\x1fb":             "\uFFFDa\uFFFDb",
		"\ufffe\uffff\ufffd":     "\uFFFD\uFFFD\uFFFD",
		"\xff\xc3(":              "\uFFFD\uFFFD(",
		"\xe4\xb8":               "\uFFFD\uFFFD",
		strings.Repeat("x", 300): strings.Repeat("x", 300),
	} {
		if got := string(appendXML([]byte("|"), text)); got != "|"+want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The room for an answer is enough, and not much more than it takes.
func TestAnswer_Room(t *testing.T) {
	t.Parallel()
	received := Answer{Messages: make([]Message, 10)}
	for i := range received.Messages {
		received.Messages[i] = Message{
			ID: strings.Repeat("i", 36), Handle: strings.Repeat("h", 60), Body: []byte(strings.Repeat("x", 256)),
			Attributes: []Attribute{{Name: "customer", Type: "String", Value: []byte("ann")}},
		}
	}
	sent := Answer{Done: make([]Done, 10)}
	for i := range sent.Done {
		sent.Done[i] = Done{ID: "5", MessageID: strings.Repeat("i", 36)}
	}
	for op, a := range map[Op]Answer{ReceiveMessage: received, SendMessageBatch: sent} {
		for _, query := range []bool{false, true} {
			took := len(answerOf(op, query, a))
			if room := a.Room(); room < took || room > 3*took {
				t.Errorf("%v: room for %d bytes, it takes %d", op, room, took)
			}
		}
	}
}
