package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

// BenchmarkSQS measures the handlers of ten messages of 256 bytes: sent, received and deleted, by SQS without signatures,
// in both of its protocols, and by the API's own calls.
func BenchmarkSQS(b *testing.B) {
	task := benchTask()
	task.Params, task.Payload = nil, []byte(strings.Repeat("x", 256))
	done := task
	done.Status = fsm.StatusCompleted
	var sent, claimed, completed fsm.Result
	for range 10 {
		sent.Submitted = append(sent.Submitted, fsm.Submitted{Task: &task, Created: true})
		claimed.Claims = append(claimed.Claims, fsm.Claim{Task: &task, Token: task.Token, Live: true})
		completed.Results = append(completed.Results, fsm.Result{Task: &done})
	}
	ten := func(format string) string {
		items := make([]string, 10)
		for i := range items {
			items[i] = strings.ReplaceAll(format, "$i", fmt.Sprint(i))
		}
		return strings.Join(items, ",")
	}
	form := func(format string) string {
		var b strings.Builder
		for i := range 10 {
			b.WriteString("&" + strings.ReplaceAll(format, "$i", strconv.Itoa(i+1)))
		}
		return b.String()
	}
	receiver, _ := setup(b, withSQS)
	receiver.sqsDone(b, "CreateQueue", `"QueueName":"mail"`)
	receiver.sqsDone(b, "SendMessage", mailURL+`,"MessageBody":"x"`)
	handle := receiver.sqsDone(b, "ReceiveMessage", mailURL).Messages[0].ReceiptHandle
	for _, x := range []struct {
		name, path, target, body string
		result                   fsm.Result
	}{
		{"send", "/", "AmazonSQS.SendMessageBatch", `{` + mailURL + `,"Entries":[` + ten(`{"Id":"$i","MessageBody":"`+string(task.Payload)+`"}`) + `]}`, sent},
		{"send by Query", "/", "", "Action=SendMessageBatch&QueueUrl=/0/mail" + form("SendMessageBatchRequestEntry.$i.Id=$i&SendMessageBatchRequestEntry.$i.MessageBody="+string(task.Payload)), sent},
		{"submit", "/api/tasks", "", `{"tasks":[` + ten(`{"task_type":"mail","params":"`+string(task.Payload[:254])+`"}`) + `]}`, sent},
		{"receive", "/", "AmazonSQS.ReceiveMessage", `{` + mailURL + `,"MaxNumberOfMessages":10}`, claimed},
		{"receive by Query", "/?Action=ReceiveMessage&QueueUrl=/0/mail&MaxNumberOfMessages=10", "", "", claimed},
		{"claim", "/api/tasks/claim", "", `{"worker_id":"w","task_types":["mail"],"limit":10}`, claimed},
		{"delete", "/", "AmazonSQS.DeleteMessageBatch", `{` + mailURL + `,"Entries":[` + ten(`{"Id":"$i","ReceiptHandle":"`+handle+`"}`) + `]}`, completed},
		{"delete by Query", "/", "", "Action=DeleteMessageBatch&QueueUrl=/0/mail" + form("DeleteMessageBatchRequestEntry.$i.Id=$i&DeleteMessageBatchRequestEntry.$i.ReceiptHandle="+handle), completed},
		{"complete", "/api/batch", "", `{"ops":[` + ten(`{"op":"complete","id":123456,"worker_id":"w","claim_token":234567}`) + `]}`, completed},
	} {
		b.Run(x.name, func(b *testing.B) {
			s, node := setup(b, withSQS)
			s.sqsDone(b, "CreateQueue", `"QueueName":"mail"`)
			node.OnPropose = func(context.Context, command.Command) (nodes.Proposed, error) {
				return nodes.Proposed{Index: 99, Stamp: fsm.Stamp{U: 1_000, T: nodetest.Start}, Result: x.result}, nil
			}
			var ctx fasthttp.RequestCtx
			ctx.Init2(conntest.Nop{}, nil, true)
			ctx.Request.Header.SetMethod("POST")
			ctx.Request.SetRequestURI(x.path)
			ctx.Request.Header.SetHost("127.0.0.1:7400")
			if x.target != "" {
				ctx.Request.Header.Set(amzTarget, x.target)
			}
			ctx.Request.SetBodyString(x.body)
			b.ReportAllocs()
			for b.Loop() {
				ctx.Response.Reset()
				s.core.handle(&ctx, false)
			}
			if ctx.Response.StatusCode() != 200 && ctx.Response.StatusCode() != 201 {
				b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
			}
		})
	}
}
