package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/claimq/claimq/internal/procs"
)

const (
	accessKeyID = "BENCH"
	secret      = "a-secret-of-twenty-six-characters"
	queueName   = "bench"
	ten         = 10
)

// nativeKey is the API key of the nodes.
var nativeKey string

var body = strings.Repeat("x", 256)

// system is a queue and a way to drive it.
type system struct {
	name    string
	prepare func(ctx context.Context) error // makes the queue
	send    func(ctx context.Context) error // ten messages
	// receive receives up to ten messages; the texts are what delete needs.
	receive func(ctx context.Context) ([]string, error)
	delete  func(ctx context.Context, received []string) error

	servers []int // their process ids
}

// figure is the result of a measurement.
type figure struct {
	rate          float64       // messages that were deleted in a second
	servers, load time.Duration // CPU time of the servers and of this process for each
}

func (s *system) cpuTimes() (servers, load time.Duration, err error) {
	for _, pid := range s.servers {
		took, err := procs.CPUTime(pid)
		if err != nil {
			return 0, 0, err
		}
		servers += took
	}
	load, err = procs.CPUTime(os.Getpid())
	return servers, load, err
}

// measure drives the system for a time.
func (c *comparison) measure(ctx context.Context, s system) (f figure, err error) {
	if err := s.prepare(ctx); err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var deleted atomic.Int64
	failed := make(chan error, c.workers)
	var working sync.WaitGroup
	for range c.workers {
		working.Go(func() {
			for ctx.Err() == nil {
				n, err := s.once(ctx)
				deleted.Add(int64(n))
				if err != nil && ctx.Err() == nil {
					failed <- err
					cancel()
				}
			}
		})
	}
	pauseFor(ctx, c.warmUp)
	before, began := deleted.Load(), time.Now()
	servers, load, err := s.cpuTimes()
	pauseFor(ctx, c.time)
	n, took := deleted.Load()-before, time.Since(began)
	servers2, load2, err2 := s.cpuTimes()
	cancel()
	working.Wait()
	select {
	case err := <-failed:
		return f, err
	default:
		each := time.Duration(max(n, 1))
		return figure{float64(n) / took.Seconds(), (servers2 - servers) / each, (load2 - load) / each}, errors.Join(err, err2)
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// once sends ten messages, receives some and deletes these.
func (s *system) once(ctx context.Context) (deleted int, err error) {
	if err := s.send(ctx); err != nil {
		return 0, err
	}
	received, err := s.receive(ctx)
	if err != nil || len(received) == 0 {
		return 0, err
	}
	return len(received), s.delete(ctx, received)
}

// newHTTP returns a client with a connection for each worker.
func newHTTP(workers int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConns: workers, MaxIdleConnsPerHost: workers, DisableCompression: true}}
}

// newSDK drives claimq by the SDK for Go.
func newSDK(endpoint string, workers int) system {
	c := sqs.New(sqs.Options{
		BaseEndpoint: &endpoint, Region: "eu", HTTPClient: newHTTP(workers),
		Credentials: credentials.NewStaticCredentialsProvider(accessKeyID, secret, ""),
	})
	queue := aws.String(endpoint + "/000000000000/" + queueName)
	ids := make([]*string, ten)
	for i := range ids {
		ids[i] = aws.String(strconv.Itoa(i))
	}
	return system{
		name: "aws-sdk-go-v2",
		prepare: func(ctx context.Context) error {
			_, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(queueName)})
			return err
		},
		send: func(ctx context.Context) error {
			entries := make([]types.SendMessageBatchRequestEntry, ten)
			for i := range entries {
				entries[i] = types.SendMessageBatchRequestEntry{Id: ids[i], MessageBody: &body}
			}
			done, err := c.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: queue, Entries: entries})
			if err == nil && len(done.Successful) != ten {
				err = fmt.Errorf("%d messages were sent", len(done.Successful))
			}
			return err
		},
		receive: func(ctx context.Context) (received []string, err error) {
			got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue, MaxNumberOfMessages: ten})
			if err != nil {
				return nil, err
			}
			for _, m := range got.Messages {
				received = append(received, *m.ReceiptHandle)
			}
			return received, nil
		},
		delete: func(ctx context.Context, received []string) error {
			entries := make([]types.DeleteMessageBatchRequestEntry, len(received))
			for i := range entries {
				entries[i] = types.DeleteMessageBatchRequestEntry{Id: ids[i], ReceiptHandle: &received[i]}
			}
			done, err := c.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: queue, Entries: entries})
			if err == nil && len(done.Successful) != len(received) {
				err = fmt.Errorf("%d of %d messages were deleted", len(done.Successful), len(received))
			}
			return err
		},
	}
}

// newNative drives claimq by its own HTTP API.
func newNative(endpoint string, workers int) system {
	c := newHTTP(workers)
	post := func(ctx context.Context, path, body string) ([]byte, error) {
		return ask(ctx, c, endpoint+path, "application/json", body, func(req *http.Request) error {
			req.Header.Set("X-API-Key", nativeKey)
			return nil
		})
	}
	tasks := `{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"task_type":"native","retention_ms":0,"params":"`+body+`"},`, ten), ",") + `]}`
	return system{
		name:    "the HTTP API",
		prepare: func(context.Context) error { return nil },
		send: func(ctx context.Context) error {
			_, err := post(ctx, "/api/tasks", tasks)
			return err
		},
		receive: func(ctx context.Context) (received []string, err error) {
			text, err := post(ctx, "/api/tasks/claim", `{"worker_id":"bench","task_types":["native"],"limit":10}`)
			if err != nil {
				return nil, err
			}
			var got struct {
				Tasks []struct {
					ID         uint64
					ClaimToken uint64 `json:"claim_token"`
				}
			}
			if err := json.Unmarshal(text, &got); err != nil {
				return nil, err
			}
			for _, t := range got.Tasks {
				received = append(received, fmt.Sprintf(`{"op":"complete","id":%d,"worker_id":"bench","claim_token":%d}`, t.ID, t.ClaimToken))
			}
			return received, nil
		},
		delete: func(ctx context.Context, received []string) error {
			_, err := post(ctx, "/api/batch", `{"ops":[`+strings.Join(received, ",")+`]}`)
			return err
		},
	}
}

var handles = regexp.MustCompile(`<ReceiptHandle>([^<]+)`)

// newQuery drives an endpoint by the Query protocol.
func newQuery(name, endpoint string, workers int) system {
	c := newHTTP(workers)
	queue := url.QueryEscape(endpoint + "/000000000000/" + queueName)
	post := func(ctx context.Context, action, rest string) ([]byte, error) {
		form := "Action=" + action + "&Version=2012-11-05&" + rest
		return ask(ctx, c, endpoint+"/", "application/x-www-form-urlencoded", form, func(req *http.Request) error { return sign(ctx, req, form) })
	}
	var messages strings.Builder
	for i := range ten {
		fmt.Fprintf(&messages, "&SendMessageBatchRequestEntry.%[1]d.Id=%[2]d&SendMessageBatchRequestEntry.%[1]d.MessageBody=%[3]s", i+1, i, body)
	}
	return system{
		name: name,
		prepare: func(ctx context.Context) error {
			_, err := post(ctx, "CreateQueue", "QueueName="+queueName)
			return err
		},
		send: func(ctx context.Context) error {
			_, err := post(ctx, "SendMessageBatch", "QueueUrl="+queue+messages.String())
			return err
		},
		receive: func(ctx context.Context) (received []string, err error) {
			text, err := post(ctx, "ReceiveMessage", "QueueUrl="+queue+"&MaxNumberOfMessages=10")
			for _, m := range handles.FindAllSubmatch(text, -1) {
				received = append(received, string(m[1]))
			}
			return received, err
		},
		delete: func(ctx context.Context, received []string) error {
			var entries strings.Builder
			for i, handle := range received {
				fmt.Fprintf(&entries, "&DeleteMessageBatchRequestEntry.%[1]d.Id=%[2]d&DeleteMessageBatchRequestEntry.%[1]d.ReceiptHandle=%[3]s", i+1, i, url.QueryEscape(handle))
			}
			text, err := post(ctx, "DeleteMessageBatch", "QueueUrl="+queue+entries.String())
			if err == nil && bytes.Contains(text, []byte("<BatchResultErrorEntry>")) {
				err = fmt.Errorf("delete: %s", text)
			}
			return err
		},
	}
}

// answerOf returns the body of an answer, and an error unless the call was done.
func answerOf(resp *http.Response) ([]byte, error) {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return text, err
}
