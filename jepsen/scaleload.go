package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/claimq/claimq/api/wire"
)

// The kinds of call that windowConn makes, in turn.
const (
	callSubmit = iota
	callClaim
	callComplete
	everyCall // not a kind: all of them together
)

var callNames = [everyCall + 1]string{"submit", "claim", "complete", "every call"}

// timedCall is one call that was answered.
type timedCall struct {
	kind int
	at   time.Time // when it was begun
	took time.Duration
}

// windowLoad is load on some connections.
type windowLoad struct{ conns []*windowConn }

func newWindowLoad(conns int) *windowLoad {
	load := &windowLoad{conns: make([]*windowConn, conns)}
	taskType := fmt.Sprintf("scale-%x", time.Now().UnixNano())
	params := `"` + strings.Repeat("x", 254) + `"`
	for k := range load.conns {
		load.conns[k] = &windowConn{taskType: taskType, worker: "scale-" + strconv.Itoa(k), params: params}
	}
	return load
}

// windowConn submits, claims and completes a task in turn on one connection, and
// notes how long each call took. It speaks HTTP by itself, with little work for
// each: it shares the processors with the nodes. For one goroutine.
type windowConn struct {
	taskType, worker, params string

	conn  net.Conn
	in    *bufio.Reader
	out   bytes.Buffer
	body  []byte      // of the last answer
	calls []timedCall // in their order
}

// run goes on until ctx ends: some call may be cut off then.
func (c *windowConn) run(ctx context.Context, addr string) error {
	var err error
	if c.conn, err = net.Dial("tcp", addr); err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }() // nothing is under way
	c.in = bufio.NewReader(c.conn)
	for i := 0; ctx.Err() == nil; i++ {
		if err := c.turn(i); err != nil {
			return err
		}
	}
	return nil
}

// turn takes one task through. As many tasks wait as claims are under way, so each
// claim gets one.
func (c *windowConn) turn(i int) error {
	if err := c.call(callSubmit, "/api/tasks", `{"task_type":%q,"params":%s}`, c.taskType, c.params); err != nil {
		return err
	}
	if err := c.call(callClaim, "/api/tasks/claim", `{"worker_id":%q,"task_types":[%q],"claim_request_id":"%s-%s-%d"}`,
		c.worker, c.taskType, c.taskType, c.worker, i); err != nil {
		return err
	}
	var claimed wire.Answer
	if err := json.Unmarshal(c.body, &claimed); err != nil {
		return err
	}
	if claimed.Task == nil || claimed.Task.ClaimToken == nil {
		return fmt.Errorf("nothing was claimed: %s", c.body)
	}
	return c.call(callComplete, fmt.Sprintf("/api/tasks/%d/complete", claimed.Task.ID), `{"worker_id":%q,"claim_token":%d}`,
		c.worker, *claimed.Task.ClaimToken)
}

// call makes a call and notes how long its answer took.
func (c *windowConn) call(kind int, path, format string, args ...any) error {
	body := fmt.Sprintf(format, args...)
	c.out.Reset()
	fmt.Fprintf(&c.out, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, c.conn.RemoteAddr(), len(body), body)
	begun := time.Now()
	if err := c.conn.SetDeadline(begun.Add(time.Minute)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.out.Bytes()); err != nil {
		return err
	}
	var err error
	if c.body, err = readAnswer(c.in, c.body); err != nil {
		return fmt.Errorf("%s: %w", callNames[kind], err)
	}
	c.calls = append(c.calls, timedCall{kind, begun, time.Since(begun)})
	return nil
}
