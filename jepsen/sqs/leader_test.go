package sqs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
)

// Each client sends messages to three nodes and does them, while the leader is killed: none is lost, and none is done
// twice but after its visibility timeout.
func TestClients_leaderKilled(t *testing.T) {
	t.Parallel()
	ctx, cluster := start(t, 3)
	url := front(t, cluster)
	node := func(name string) func(context.Context, *client) error { return counted(javascript(t, name, url)...) }
	clients := []*client{
		newClient("aws-sdk-go-v2", proof.Count(600, 20_000), goSDK(url)),
		newClient("aws-sdk", proof.Count(600, 20_000), node("aws-sdk")),
		newClient("sqs-consumer", proof.Count(600, 20_000), node("sqs-consumer")),
		newClient("squiss", proof.Count(600, 20_000), node("squiss")),
		newClient("boto3", proof.Count(300, 20_000), counted(python, "testdata/client.py", url)),
		newClient("awscli", proof.Count(20, 1_000), cli(url)),
		newClient("celery", proof.Count(50, 2_000), celery(url)),
		newClient("ordered.fifo", proof.Count(600, 20_000), goSDK(url)),
	}
	sdk := newSDK(url, secret)
	clients[5].anonymous = true
	clients[5].visibility = 30 * time.Second // a process has to start before it can delete what another has received
	clients[6].visibility = 30 * time.Second // its worker holds messages that it has not begun
	clients[7].fifo = true
	running, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	for _, c := range clients {
		attributes := map[string]string{"VisibilityTimeout": strconv.Itoa(int(c.visibility.Seconds()))}
		if c.fifo {
			attributes["FifoQueue"] = "true"
		}
		made, err := sdk.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(c.name), Attributes: attributes})
		if err != nil {
			t.Fatal(err)
		}
		c.queue = *made.QueueUrl
		working.Go(func() {
			if err := c.run(running, c); err != nil {
				t.Errorf("%s: %v", c.name, err)
				stop()
			}
		})
	}
	began := time.Now()
	kills := killLeaders(running, t, cluster, func() {
		for _, c := range clients {
			select {
			case <-c.all:
				t.Logf("%s: all were done within %s", c.name, time.Since(began).Round(100*time.Millisecond))
			case <-running.Done():
				return
			}
		}
	})
	for _, c := range clients {
		untilDone(running, func() error { return empty(ctx, sdk, c.queue) })
	}
	stop()
	working.Wait()
	if t.Failed() {
		return // a client has failed, and what was not done by then is not lost
	}
	if err := ctx.Err(); err != nil {
		t.Error(err)
	}
	for _, c := range clients {
		c.check(t)
	}
	t.Logf("the leader was killed %d times", kills)
}

// killLeaders kills the leader, starts it again, and does so again some seconds after it is ready, while meanwhile runs,
// but at least once.
func killLeaders(ctx context.Context, t *testing.T, cluster *procs.Cluster, meanwhile func()) (kills int) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		meanwhile()
	}()
	const every = 3 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for over := false; !over || kills == 0; {
		select {
		case <-done:
			over = true
		case <-tick.C:
		}
		if over && kills > 0 || ctx.Err() != nil {
			break
		}
		leader, err := cluster.WaitLeader(ctx)
		if err != nil {
			break
		}
		if err := leader.Kill(); err != nil {
			t.Error(err)
		}
		if err := leader.StartReady(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		tick.Reset(every)
		kills++
	}
	<-done
	return kills
}

// front returns the URL of one address for all nodes, as a balancer has it: each connection goes to the next node that
// takes it.
func front(t *testing.T, cluster *procs.Cluster) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for next := 0; ; next++ {
			conn, err := ln.Accept()
			if err != nil {
				return // closed
			}
			go pass(conn, cluster.Nodes, next)
		}
	}()
	return "http://" + ln.Addr().String()
}

// pass connects conn with the next node that takes it, until either closes.
func pass(conn net.Conn, nodes []*procs.Node, next int) {
	defer func() { _ = conn.Close() }()
	for i := range nodes {
		node, err := net.Dial("tcp", nodes[(next+i)%len(nodes)].HTTPAddr)
		if err != nil {
			continue
		}
		defer func() { _ = node.Close() }()
		over := make(chan struct{}, 2)
		for _, way := range [][2]net.Conn{{conn, node}, {node, conn}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				over <- struct{}{}
			}()
		}
		<-over
		return
	}
}

// senders is how many goroutines goSDK sends with.
const senders = 4

// goSDK sends and does messages by the SDK for Go.
func goSDK(url string) func(ctx context.Context, c *client) error {
	return func(ctx context.Context, c *client) error {
		sdk := newSDK(url, secret)
		var working sync.WaitGroup
		defer working.Wait()
		for s := range senders {
			working.Go(func() {
				for i := s; i < c.count; i += senders {
					text := strconv.Itoa(i)
					in := &sqs.SendMessageInput{QueueUrl: &c.queue, MessageBody: &text}
					if c.fifo {
						in.MessageGroupId, in.MessageDeduplicationId = aws.String(strconv.Itoa(s)), &text
					}
					untilDone(ctx, func() error {
						_, err := sdk.SendMessage(ctx, in)
						if err != nil {
							c.note(line{Unsure: []string{text}, Error: err.Error()})
						}
						return err
					})
				}
			})
			working.Go(func() {
				for ctx.Err() == nil {
					if err := doSome(ctx, sdk, c); err != nil && ctx.Err() == nil {
						c.note(line{Error: err.Error()})
					}
				}
			})
		}
		return nil
	}
}

// doSome receives up to ten messages and deletes them.
func doSome(ctx context.Context, sdk *sqs.Client, c *client) error {
	asked := time.Now()
	got, err := sdk.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &c.queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil || len(got.Messages) == 0 {
		return err
	}
	var entries []types.DeleteMessageBatchRequestEntry
	for i, m := range got.Messages {
		receives, err := strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
		if err != nil {
			return err
		}
		c.note(line{Does: *m.Body, ID: *m.MessageId, Receives: receives, Asked: asked.UnixMilli(), At: time.Now().UnixMilli()})
		entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	done, err := sdk.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &c.queue, Entries: entries})
	if err == nil && len(done.Failed) > 0 {
		err = fmt.Errorf("delete: %s", *done.Failed[0].Message)
	}
	return err
}

// empty returns an error as long as the queue has messages.
func empty(ctx context.Context, sdk *sqs.Client, queue string) error {
	a, err := sdk.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		return err
	}
	for _, name := range []string{"", "NotVisible", "Delayed"} {
		if n := a.Attributes["ApproximateNumberOfMessages"+name]; n != "0" {
			return errors.New("ApproximateNumberOfMessages" + name + " is " + n)
		}
	}
	return nil
}

// untilDone repeats what fails until it succeeds or ctx ends.
func untilDone(ctx context.Context, do func() error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for do() != nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
