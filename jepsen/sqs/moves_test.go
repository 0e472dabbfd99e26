package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/claimq/claimq/internal/proof"
)

// A move goes on when its leader dies: each message is moved once, and none is lost.
func TestMoves_leaderKilled(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, 3)
	sdk := newSDK(front(t, cluster), secret)
	rate := int32(proof.Count(50, 500))
	count := int(rate) * 6
	queue := func(name string, attributes map[string]string) (url string) {
		made, err := sdk.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		return *made.QueueUrl
	}
	const deadARN = "arn:aws:sqs:eu-west-1:000000000000:dead"
	dead := queue("dead", nil)
	mail := queue("mail", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + deadARN + `","maxReceiveCount":1}`})
	for i := range count {
		if _, err := sdk.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &mail, MessageBody: aws.String(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
	if n := receiveAll(ctx, t, sdk, mail, count, func(m []types.Message) error {
		var entries []types.ChangeMessageVisibilityBatchRequestEntry
		for i := range m {
			entries = append(entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m[i].ReceiptHandle})
		}
		_, err := sdk.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &mail, Entries: entries})
		return err
	}); n != count {
		t.Fatalf("%d of %d messages came", n, count)
	}

	if _, err := sdk.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(deadARN), MaxNumberOfMessagesPerSecond: &rate}); err != nil {
		t.Fatal(err)
	}
	last := func() (move types.ListMessageMoveTasksResultEntry, err error) {
		got, err := sdk.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(deadARN)})
		if err != nil || len(got.Results) != 1 {
			return move, fmt.Errorf("%+v, %w", got, err)
		}
		return got.Results[0], nil
	}
	untilDone(ctx, func() error {
		if move, err := last(); err != nil || move.ApproximateNumberOfMessagesMoved == 0 {
			return errors.New("nothing is moved yet")
		}
		return nil
	})
	leader, err := cluster.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	var move types.ListMessageMoveTasksResultEntry
	untilDone(ctx, func() (err error) {
		move, err = last()
		return err
	})
	if *move.Status != "RUNNING" || move.ApproximateNumberOfMessagesMoved >= int64(count) {
		t.Fatalf("it had ended before the next leader served: %+v", move)
	}
	t.Logf("%d of %d were moved under the first leader", move.ApproximateNumberOfMessagesMoved, count)
	untilDone(ctx, func() (err error) {
		if move, err = last(); err == nil && *move.Status == "RUNNING" {
			err = errors.New("it runs")
		}
		return err
	})
	if *move.Status != "COMPLETED" || move.ApproximateNumberOfMessagesMoved != int64(count) {
		t.Errorf("%s, %d moved of %d", *move.Status, move.ApproximateNumberOfMessagesMoved, count)
	}
	if err := empty(ctx, sdk, dead); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	receiveAll(ctx, t, sdk, mail, count, func(m []types.Message) error {
		for i := range m {
			if seen[*m[i].Body] {
				t.Errorf("message %s was moved twice", *m[i].Body)
			}
			seen[*m[i].Body] = true
		}
		return nil
	})
	if len(seen) != count {
		t.Errorf("%d of %d messages are back", len(seen), count)
	}
	a, err := sdk.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &mail, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil || a.Attributes["ApproximateNumberOfMessages"] != "0" || a.Attributes["ApproximateNumberOfMessagesNotVisible"] != strconv.Itoa(count) {
		t.Errorf("%+v, %v", a, err)
	}
}

// receiveAll receives up to count messages, and gives each batch to with. It returns how many came.
func receiveAll(ctx context.Context, t *testing.T, sdk *sqs.Client, queue string, count int, with func(m []types.Message) error) (n int) {
	t.Helper()
	for n < count {
		got, err := sdk.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, VisibilityTimeout: 600})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Messages) == 0 {
			return n
		}
		n += len(got.Messages)
		if err := with(got.Messages); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
