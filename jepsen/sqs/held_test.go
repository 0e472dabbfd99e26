package sqs

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/claimq/claimq/internal/testwait"
)

// A worker that was stopped past the visibility timeout of its message deletes it once it goes on. By then another has
// the message, and keeps it.
func TestClients_stopped(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, 1)
	url := cluster.Nodes[0].URL()
	sdk := newSDK(url, secret)
	for name, command := range map[string][]string{
		"aws-sdk": javascript(t, "aws-sdk", url), "sqs-consumer": javascript(t, "sqs-consumer", url), "squiss": javascript(t, "squiss", url),
		"boto3": {python, "testdata/client.py", url},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := sdk.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			queue := made.QueueUrl
			if _, err := sdk.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("x")}); err != nil {
				t.Fatal(err)
			}
			said := make(chan line, 100)
			p, err := startProcess(environ("HELD=1"), func(l line) { said <- l }, append(command, *queue, "0")...)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.end(); err != nil {
					t.Error(err)
				}
			}()
			await := func(what string, is func(l line) bool) {
				t.Helper()
				deadline := time.After(testwait.Patience)
				for {
					select {
					case l := <-said:
						if is(l) {
							return
						}
					case <-p.ended:
						t.Fatalf("it ended before it %s: %v\n%s", what, p.err, p.errors.Bytes())
					case <-deadline:
						t.Fatalf("it never %s", what)
					}
				}
			}
			await("had the message", func(l line) bool { return l.Does == "x" })
			if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			got, err := sdk.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue, WaitTimeSeconds: 20, VisibilityTimeout: 600, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
			// It may have come to the worker twice before that stopped.
			if err != nil || len(got.Messages) != 1 || got.Messages[0].Attributes["ApproximateReceiveCount"] == "1" {
				t.Fatalf("%+v, %v", got, err)
			}
			if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if _, err := p.input.Write([]byte("go on\n")); err != nil {
				t.Fatal(err)
			}
			await("deleted the message", func(l line) bool { return l.Deleted == "x" })
			if _, err := sdk.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: queue, ReceiptHandle: got.Messages[0].ReceiptHandle, VisibilityTimeout: 600}); err != nil {
				t.Errorf("its new receiver has lost it: %v", err)
			}
		})
	}
}

// Clients whose clock is wrong correct it by the answer that refuses their signature, but for boto3, which never does.
func TestClients_clock(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, 1)
	url := cluster.Nodes[0].URL()
	made, err := newSDK(url, secret).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("mail")})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("aws-sdk-go-v2", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // where it is the year 2000
			// Time goes on there only while nothing is read from a connection.
			transport := &http.Transport{DisableKeepAlives: true}
			sdk := newSDK(url, secret, func(o *sqs.Options) { o.HTTPClient = &http.Client{Transport: transport} })
			if got, err := sdk.ListQueues(t.Context(), &sqs.ListQueuesInput{}); err != nil || len(got.QueueUrls) != 1 {
				t.Errorf("%+v, %v", got, err)
			}
			var api smithy.APIError
			sdk = newSDK(url, secret, func(o *sqs.Options) {
				o.HTTPClient, o.RetryMaxAttempts = &http.Client{Transport: transport}, 1
			})
			if _, err := sdk.ListQueues(t.Context(), &sqs.ListQueuesInput{}); !errors.As(err, &api) || !strings.Contains(api.ErrorMessage(), "Signature expired") {
				t.Errorf("it is right without a correction: %v", err)
			}
		})
	})
	t.Run("aws-sdk", func(t *testing.T) {
		said := make(chan line, 100)
		p, err := startProcess(environ("CLOCK_OFF_MS=-7200000"), func(l line) { said <- l }, append(javascript(t, "aws-sdk", url), *made.QueueUrl, "1")...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := p.end(); err != nil {
				t.Error(err)
			}
		}()
		for done := false; !done; { // of calls that are made at once only the first to be refused is tried again
			select {
			case l := <-said:
				if done = l.Does == "0"; !done && !strings.Contains(l.Error, "Signature expired") {
					t.Errorf("%+v", l)
				}
			case <-ctx.Done():
				t.Fatal(ctx.Err())
			}
		}
	})
	t.Run("boto3", func(t *testing.T) {
		p, err := startProcess(environ(), func(line) {}, python, "testdata/clock.py", url)
		if err != nil {
			t.Fatal(err)
		}
		if <-p.ended; p.err != nil {
			t.Errorf("%v\n%s", p.err, p.errors.Bytes())
		}
	})
}
