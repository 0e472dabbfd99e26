package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// callTimeout bounds one call: longer than the server's own bound, so that it
// is the server that says that an outcome is unknown.
const callTimeout = 15 * time.Second

// call numbers the kinds of call that are timed.
type call int

const (
	callSubmit call = iota
	callClaim
	callComplete
	callCompleteAndClaim
	callKinds
)

var callNames = [callKinds]string{"submit", "claim", "complete", "complete+claim"}

// held is one claimed task.
type held struct{ id, token uint64 }

// conn is one connection with the buffers of its calls. It is for one
// goroutine.
type conn struct {
	client   *fasthttp.HostClient
	base     string // URL
	taskType string
	worker   string
	params   []byte
	batch    int
	ids      bool // give claims a request id
	claims   int  // made so far
	req      *fasthttp.Request
	resp     *fasthttp.Response
	body     []byte
	timings  *timings
}

func newConn(client *fasthttp.HostClient, base, taskType string, k int, params []byte, c Config, t *timings) *conn {
	return &conn{
		client: client, base: base, taskType: taskType, worker: "bench-" + strconv.Itoa(k), params: params,
		batch: c.Batch, ids: c.RequestIDs, req: &fasthttp.Request{}, resp: &fasthttp.Response{}, timings: t,
	}
}

// do sends c.body and times the answer. A status of 300 and above is an error.
func (c *conn) do(kind call, path string) error {
	c.req.Reset()
	c.resp.Reset()
	c.req.Header.SetMethod(fasthttp.MethodPost)
	c.req.SetRequestURI(c.base + path)
	c.req.SetBodyRaw(c.body)
	start := time.Now()
	err := c.client.DoTimeout(c.req, c.resp, callTimeout)
	c.timings.add(kind, time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w", callNames[kind], err)
	}
	if c.resp.StatusCode() >= 300 {
		return fmt.Errorf("%s: status %d: %s", callNames[kind], c.resp.StatusCode(), c.resp.Body())
	}
	return nil
}

// submit submits n tasks in one call and returns their ids.
func (c *conn) submit(n int) ([]uint64, error) {
	one := c.batch == 1
	c.body = c.body[:0]
	if !one {
		c.body = append(c.body, `{"tasks":[`...)
	}
	for i := range n {
		if i > 0 {
			c.body = append(c.body, ',')
		}
		c.body = append(c.body, `{"task_type":"`...)
		c.body = append(c.body, c.taskType...)
		c.body = append(c.body, `","params":`...)
		c.body = append(c.body, c.params...)
		c.body = append(c.body, '}')
	}
	if !one {
		c.body = append(c.body, `]}`...)
	}
	if err := c.do(callSubmit, "/api/tasks"); err != nil {
		return nil, err
	}
	ids := numbersAfter(c.resp.Body(), `"id":`, n)
	if len(ids) != n {
		return nil, fmt.Errorf("submit of %d tasks: the answer has %d ids: %s", n, len(ids), c.resp.Body())
	}
	return ids, nil
}

// errNone says that there was nothing to claim.
var errNone = errors.New("nothing to claim")

// claim claims up to n tasks in one call. errNone if there are none.
func (c *conn) claim(n int) ([]held, error) {
	c.body = c.appendClaim(c.body[:0], n)
	err := c.do(callClaim, "/api/tasks/claim")
	if err != nil && c.resp.StatusCode() == fasthttp.StatusNotFound {
		return nil, errNone
	}
	if err != nil {
		return nil, err
	}
	ids := numbersAfter(c.resp.Body(), `"id":`, n)
	tokens := numbersAfter(c.resp.Body(), `"claim_token":`, n)
	if len(ids) == 0 {
		return nil, errNone
	}
	if len(ids) != len(tokens) {
		return nil, fmt.Errorf("claim: the answer has %d ids and %d tokens: %s", len(ids), len(tokens), c.resp.Body())
	}
	tasks := make([]held, len(ids))
	for i := range ids {
		tasks[i] = held{ids[i], tokens[i]}
	}
	return tasks, nil
}

// appendClaim appends a claim of up to n tasks.
func (c *conn) appendClaim(b []byte, n int) []byte {
	b = append(b, `{"worker_id":"`...)
	b = append(b, c.worker...)
	b = append(b, `","task_types":["`...)
	b = append(b, c.taskType...)
	b = append(b, `"]`...)
	if c.batch > 1 {
		b = append(b, `,"limit":`...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	if c.ids {
		c.claims++
		b = append(b, `,"claim_request_id":"`...)
		b = append(b, c.taskType...) // unique to the run
		b = append(b, c.worker...)
		b = append(b, '-')
		b = strconv.AppendInt(b, int64(c.claims), 10)
		b = append(b, '"')
	}
	return append(b, '}')
}

// completeAndClaim completes a task and claims the next one in the same call, nil
// if there is none.
func (c *conn) completeAndClaim(h held) (*held, error) {
	c.body = c.appendHold(c.body[:0], h)
	c.body = append(c.body, `,"claim":`...)
	c.body = append(c.appendClaim(c.body, 1), '}')
	if err := c.do(callCompleteAndClaim, completePath(h)); err != nil {
		return nil, err
	}
	_, claimed, ok := bytes.Cut(c.resp.Body(), []byte(`"claimed":`))
	if !ok {
		return nil, fmt.Errorf("%s: the answer does not say what was claimed: %s", callNames[callCompleteAndClaim], c.resp.Body())
	}
	ids, tokens := numbersAfter(claimed, `"id":`, 1), numbersAfter(claimed, `"claim_token":`, 1)
	if len(ids) != len(tokens) {
		return nil, fmt.Errorf("%s: the claimed task has no token: %s", callNames[callCompleteAndClaim], c.resp.Body())
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return &held{ids[0], tokens[0]}, nil
}

func (c *conn) complete(h held) error {
	c.body = append(c.appendHold(c.body[:0], h), '}')
	return c.do(callComplete, completePath(h))
}

// appendHold appends who settles what, without the brace at the end.
func (c *conn) appendHold(b []byte, h held) []byte {
	b = append(b, `{"worker_id":"`...)
	b = append(b, c.worker...)
	b = append(b, `","claim_token":`...)
	return strconv.AppendUint(b, h.token, 10)
}

func completePath(h held) string { return "/api/tasks/" + strconv.FormatUint(h.id, 10) + "/complete" }

// numbersAfter returns up to limit of the numbers that follow key in body. The
// tasks' params hold no such key, so this finds those of the tasks alone.
func numbersAfter(body []byte, key string, limit int) []uint64 {
	var ns []uint64
	for len(ns) < limit {
		i := bytes.Index(body, []byte(key))
		if i < 0 {
			break
		}
		body = body[i+len(key):]
		var n uint64
		digits := 0
		for digits < len(body) && body[digits] >= '0' && body[digits] <= '9' {
			n = n*10 + uint64(body[digits]-'0')
			digits++
		}
		if digits > 0 { // null is no number
			ns = append(ns, n)
		}
	}
	return ns
}
