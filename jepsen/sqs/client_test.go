package sqs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// line is what a client says of one of its steps.
type line struct {
	// A message is done: its text, its id, how often it was received by then, and when, in ms since 1970. It was asked
	// for before it was received; 0: the client does not know since when.
	Does, ID  string
	Receives  int
	Asked, At int64

	Deleted string   // a message
	Unsure  []string // texts of messages that are sent again, because the call failed
	Error   string
}

// client sends messages to a queue and does them.
type client struct {
	name       string
	count      int // messages, whose texts are the numbers from 0
	queue      string
	visibility time.Duration
	// anonymous: its calls have no id by which the server knows that one is tried again.
	anonymous bool
	// fifo: its queue is one. Message i is in the group i % senders, and sent after the one before it there.
	fifo bool
	// run sends and does messages until ctx ends.
	run func(ctx context.Context, c *client) error

	mu     sync.Mutex
	did    map[string][]line // by text
	order  []string          // texts, as they were done first
	unsure map[string]bool   // texts
	errors int
	last   string        // error
	all    chan struct{} // closed when each message was done
}

func newClient(name string, count int, run func(ctx context.Context, c *client) error) *client {
	return &client{
		name: name, count: count, queue: name, visibility: 5 * time.Second, run: run,
		did: map[string][]line{}, unsure: map[string]bool{}, all: make(chan struct{}),
	}
}

// note keeps what the client says.
func (c *client) note(l line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range l.Unsure {
		c.unsure[text] = true
	}
	if l.Error != "" {
		c.errors++
		c.last = l.Error
	}
	if l.Does == "" {
		return
	}
	if len(c.did[l.Does]) == 0 {
		c.order = append(c.order, l.Does)
	}
	c.did[l.Does] = append(c.did[l.Does], l)
	if len(c.did) == c.count && len(c.did[l.Does]) == 1 {
		close(c.all)
	}
}

// check reports what was lost, and what was done twice although its visibility timeout was not over.
func (c *client) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	again, lost := 0, 0
	for i := range c.count {
		text := strconv.Itoa(i)
		did := c.did[text]
		if len(did) == 0 {
			lost++
			continue
		}
		slices.SortFunc(did, func(a, b line) int { return a.Receives - b.Receives })
		for k, l := range did[1:] {
			again++
			switch before := did[k]; {
			case l.ID != before.ID:
				if c.fifo || !c.unsure[text] && !c.anonymous {
					t.Errorf("%s: one call has sent message %d twice: %+v", c.name, i, did)
				}
			case l.Receives == before.Receives:
				t.Errorf("%s: one receive of message %d was answered twice: %+v", c.name, i, did)
			case before.Asked > 0 && l.At < before.Asked+c.visibility.Milliseconds():
				t.Errorf("%s: message %d came again before its visibility timeout was over: %+v", c.name, i, did)
			}
		}
	}
	if c.fifo {
		c.checkOrder(t)
	}
	if lost > 0 {
		t.Errorf("%s: %d messages are lost", c.name, lost)
	}
	t.Logf("%s: %d messages, %d done again; %d errors, the last: %.120s", c.name, c.count, again, c.errors, c.last)
}

// checkOrder reports messages of a group that were done before one that was sent earlier.
func (c *client) checkOrder(t *testing.T) {
	t.Helper()
	last := map[int]int{} // by group
	for _, text := range c.order {
		i, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := last[i%senders]; ok && i < before {
			t.Errorf("%s: message %d was done after %d of its group", c.name, i, before)
		}
		last[i%senders] = i
	}
}

// process returns what runs a client that is a program, and notes the lines that it prints.
func process(env []string, command ...string) func(ctx context.Context, c *client) error {
	return func(ctx context.Context, c *client) error {
		p, err := startProcess(env, c.note, command...)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return p.end()
		case <-p.ended:
			text := p.errors.Bytes()
			return fmt.Errorf("%s ended too soon: %s\n%s", command[0], p.cmd.ProcessState, text[max(len(text)-4_000, 0):])
		}
	}
}

// counted is process for a program that gets its queue and its count as the last arguments.
func counted(command ...string) func(ctx context.Context, c *client) error {
	return func(ctx context.Context, c *client) error {
		return process(environ(), append(slices.Clone(command), c.queue, strconv.Itoa(c.count))...)(ctx, c)
	}
}

// program is a running client.
type program struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	errors bytes.Buffer
	ended  chan struct{}
	err    error // set when it has ended
}

func startProcess(env []string, note func(line), command ...string) (*program, error) {
	p := &program{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.errors
	p.cmd.SysProcAttr = procs.ChildAttr()
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.input = input
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			var l line
			if json.Unmarshal(lines.Bytes(), &l) == nil { // Celery prints a banner, too
				note(l)
			}
		}
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// end kills the program.
func (p *program) end() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return nil
}

// environ is how programs get the credential.
func environ(more ...string) []string {
	return append(more, "AWS_ACCESS_KEY_ID="+accessID, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_DEFAULT_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true")
}

// python is Debian's, which sees Debian's boto3 and Celery.
const python = "/usr/bin/python3"

// node22 installs the clients in JavaScript and what the tests of the TypeScript client need, and returns the path of
// Node 22, which is part of that.
var node22 = sync.OnceValues(func() (path string, err error) {
	const tools = "../../clients/typescript/tests/tools/"
	for _, install := range []string{"testdata/js/install", tools + "install"} {
		if out, err := exec.Command(install).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", install, err, out)
		}
	}
	found, err := filepath.Glob(tools + "node_modules/node22*/bin/node")
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("one Node 22 should be there: %v, %w", found, err)
	}
	return found[0], nil
})

// javascript returns the command of a client for Node 22.
func javascript(t *testing.T, arguments ...string) []string {
	t.Helper()
	node, err := node22()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{node, "testdata/js/client.mjs"}, arguments...)
}

// cliWorkers bounds the processes of the AWS CLI that send at a time, and those that receive and delete: each takes a second of
// a core, most of it to start.
const cliWorkers = 4

// cli sends and does messages by the AWS CLI, a process for each call.
func cli(endpoint string) func(ctx context.Context, c *client) error {
	aws := func(ctx context.Context, answer any, arguments ...string) error {
		cmd := exec.CommandContext(ctx, "/usr/bin/aws", append([]string{"--endpoint-url", endpoint, "--output", "json", "sqs"}, arguments...)...)
		cmd.Env = append(os.Environ(), environ()...)
		out, err := cmd.Output()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			return fmt.Errorf("aws %s: %w: %s", arguments[0], err, failed.Stderr)
		}
		if err != nil || len(bytes.TrimSpace(out)) == 0 {
			return err
		}
		return json.Unmarshal(out, answer)
	}
	type entry struct {
		ID            string `json:"Id"`
		MessageBody   string `json:",omitempty"`
		ReceiptHandle string `json:",omitempty"`
	}
	batch := func(ctx context.Context, c *client, call string, entries []entry) error {
		b, err := json.Marshal(entries)
		if err != nil {
			return err
		}
		var done struct{ Failed []entry }
		if err := aws(ctx, &done, call, "--queue-url", c.queue, "--entries", string(b)); err != nil {
			return err
		}
		if len(done.Failed) > 0 {
			return fmt.Errorf("%s: %v", call, done.Failed)
		}
		return nil
	}
	doSome := func(ctx context.Context, c *client) error {
		var got struct {
			Messages []struct {
				MessageID     string `json:"MessageId"`
				ReceiptHandle string
				Body          string
				Attributes    struct{ ApproximateReceiveCount string }
			}
		}
		asked := time.Now()
		if err := aws(ctx, &got, "receive-message", "--queue-url", c.queue, "--max-number-of-messages", "10", "--wait-time-seconds", "1", "--attribute-names", "ApproximateReceiveCount"); err != nil || len(got.Messages) == 0 {
			return err
		}
		var entries []entry
		for i, m := range got.Messages {
			receives, err := strconv.Atoi(m.Attributes.ApproximateReceiveCount)
			if err != nil {
				return err
			}
			c.note(line{Does: m.Body, ID: m.MessageID, Receives: receives, Asked: asked.UnixMilli(), At: time.Now().UnixMilli()})
			entries = append(entries, entry{ID: strconv.Itoa(i), ReceiptHandle: m.ReceiptHandle})
		}
		return batch(ctx, c, "delete-message-batch", entries)
	}
	return func(ctx context.Context, c *client) error {
		var working sync.WaitGroup
		defer working.Wait()
		for w := range cliWorkers {
			working.Go(func() {
				for i := 10 * w; i < c.count; i += 10 * cliWorkers {
					var entries []entry
					var texts []string
					for k := i; k < min(i+10, c.count); k++ {
						texts = append(texts, strconv.Itoa(k))
						entries = append(entries, entry{ID: strconv.Itoa(k), MessageBody: strconv.Itoa(k)})
					}
					untilDone(ctx, func() error {
						err := batch(ctx, c, "send-message-batch", entries)
						if err != nil {
							c.note(line{Unsure: texts, Error: err.Error()})
						}
						return err
					})
				}
			})
			working.Go(func() {
				for ctx.Err() == nil {
					if err := doSome(ctx, c); err != nil && ctx.Err() == nil {
						c.note(line{Error: err.Error()})
					}
				}
			})
		}
		return nil
	}
}

// celery sends tasks and does them by a worker of Celery. Kombu makes the queue.
func celery(endpoint string) func(ctx context.Context, c *client) error {
	return func(ctx context.Context, c *client) error {
		broker := "BROKER=" + strings.Replace(endpoint, "http://", "sqs://"+accessID+":"+secret+"@", 1) + "//"
		env := environ(broker, "VISIBILITY="+strconv.Itoa(int(c.visibility.Seconds())), "PYTHONPATH=testdata")
		sender, err := startProcess(env, c.note, python, "testdata/tasks.py", strconv.Itoa(c.count))
		if err != nil {
			return err
		}
		work := process(env, python, "-m", "celery", "-A", "tasks", "worker", "--pool", "solo", "--without-gossip", "--without-mingle")
		// Its worker ends if botocore's tries meet no leader: a supervisor starts it again (docs/sqs.md).
		for err = work(ctx, c); err != nil && strings.Contains(err.Error(), "(ServiceUnavailable)"); err = work(ctx, c) {
			if ctx.Err() != nil {
				break
			}
		}
		select {
		case <-sender.ended:
			if sender.err != nil {
				err = errors.Join(err, fmt.Errorf("the sender: %w\n%s", sender.err, sender.errors.Bytes()))
			}
			return err
		default:
			return errors.Join(err, sender.end())
		}
	}
}
