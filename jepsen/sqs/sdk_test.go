package sqs

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
)

var accessID, secret = Credential.AccessKeyID, Credential.SecretAccessKey

// start starts nodes with the endpoint and one credential, until the test ends. more are credentials that are added to
// the file.
func start(t *testing.T, nodes int, more ...string) (ctx context.Context, cluster *procs.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(proof.Count(10, 120))*time.Minute)
	t.Cleanup(cancel)
	dir := t.TempDir()
	binary, err := procs.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "credentials.yaml")
	if err := WriteCredential(file, more...); err != nil {
		t.Fatal(err)
	}
	keysFile := filepath.Join(dir, "keys.yaml")
	keys, err := procs.WriteKeys(keysFile, map[string]string{"operator": "role: operator"})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err = procs.Start(ctx, procs.Config{
		Binary: binary, Dir: dir, Nodes: nodes, APIKey: keys["operator"],
		Flags: []string{"--keys-file", keysFile, "--sqs-enabled", "--sqs-credentials-file", file},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return ctx, cluster
}

// newSDK returns a client of the SDK, unmodified but for the URL.
func newSDK(endpoint, signer string, options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: aws.String(endpoint), Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider(accessID, signer, ""),
	}, options...)
}

// Every call that is there, as the Go SDK makes it and reads its answer, sums included.
func TestSDK(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, 1)
	c := newSDK(cluster.Nodes[0].URL(), secret)
	made, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("mail"), Attributes: map[string]string{"VisibilityTimeout": "30"}, Tags: map[string]string{"team": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	queue := made.QueueUrl
	if got, err := c.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("mail")}); err != nil || *got.QueueUrl != *queue {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.ListQueues(ctx, &sqs.ListQueuesInput{}); err != nil || len(got.QueueUrls) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: queue}); err != nil || got.Tags["team"] != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	body := "an émail €\n\"quoted\" <&>"
	sent, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String(body)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 5, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	m := got.Messages[0]
	if *m.Body != body || *m.MessageId != *sent.MessageId || m.Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("%+v", m)
	}
	// Shortened to nothing, it comes again, counted.
	if _, err := c.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 1}); err != nil {
		t.Error(err)
	}
	got, err = c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue, WaitTimeSeconds: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil || len(got.Messages) != 1 || got.Messages[0].Attributes["ApproximateReceiveCount"] != "2" {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: got.Messages[0].ReceiptHandle}); err != nil {
		t.Error(err)
	}
	counts, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: queue, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil || counts.Attributes["ApproximateNumberOfMessages"] != "0" || counts.Attributes["ApproximateNumberOfMessagesNotVisible"] != "0" {
		t.Errorf("%+v, %v", counts, err)
	}
	if _, err := c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: queue}); err != nil {
		t.Error(err)
	}
	var gone *types.QueueDoesNotExist
	_, err = c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("x")})
	var api smithy.APIError
	if !errors.As(err, &gone) || !errors.As(err, &api) || api.ErrorCode() != "AWS.SimpleQueueService.NonExistentQueue" {
		t.Errorf("%v is no %T with the code of Query", err, gone)
	}
	_, err = newSDK(cluster.Nodes[0].URL(), "another-secret-of-some-length").ListQueues(ctx, &sqs.ListQueuesInput{})
	if !errors.As(err, &api) || api.ErrorCode() != "SignatureDoesNotMatch" {
		t.Errorf("%v", err)
	}
}
