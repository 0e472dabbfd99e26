package bench

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// callTimeout bounds one call. It is longer than the server's own bound, so that the server reports unknown outcomes.
const callTimeout = 15 * time.Second

// call is a kind of call that is timed.
type call int

const (
	callSubmit call = iota
	callClaim
	callComplete
	callCompleteAndClaim
	callKinds
)

var callNames = [callKinds]string{"submit", "claim", "complete", "complete+claim"}

// The paths of the calls, and the texts searched for in their answers. The tasks' params contain none of these.
var (
	pathSubmit   = []byte("/api/tasks")
	pathClaim    = []byte("/api/tasks/claim")
	pathTask     = []byte("/api/tasks/")
	pathBatch    = []byte("/api/batch")
	verbComplete = []byte("/complete")

	success     = []byte(`{"success":true`)
	keyID       = []byte(`{"id":`) // the brace is rarer than the quote, so it is found sooner
	keyToken    = []byte(`"claim_token":`)
	keyClaimed  = []byte(`"claimed":`)
	keySuccess  = []byte(`{"success":`)
	isCompleted = []byte(`"status":"completed"`)
	noneFailed  = []byte(`"failed":0}`)
)

// held is one claimed task.
type held struct{ id, token uint64 }

// conn is one connection with the buffers for its calls. It is for one goroutine.
type conn struct {
	link     *link
	taskType string
	worker   string
	params   []byte
	batch    int
	ids      bool // give claims a request id
	claims   int  // made so far
	body     []byte
	answer   []byte // the last answer's body
	status   int
	id       []byte // a task's id as digits
	tasks    []held
	timings  *timings
	ledger   *ledger
}

func newConn(base, taskType string, k int, params []byte, c Config) *conn {
	return &conn{
		link: newLink(base), taskType: taskType, worker: "bench-" + strconv.Itoa(k), params: params,
		batch: c.Batch, ids: c.RequestIDs, timings: &timings{}, ledger: &ledger{},
	}
}

// do sends c.body and times the answer. A status of 300 or above, and an answer that does not say success, are
// errors.
func (c *conn) do(kind call, path ...[]byte) error {
	start := time.Now()
	var err error
	c.status, c.answer, err = c.link.post(start, c.body, path...)
	c.timings.add(kind, time.Since(start))
	if err != nil {
		return fmt.Errorf("%s: %w", callNames[kind], err)
	}
	if c.status >= 300 || !bytes.HasPrefix(c.answer, success) {
		return fmt.Errorf("%s: status %d: %s", callNames[kind], c.status, c.answer)
	}
	return nil
}

// submit submits n tasks in one call.
func (c *conn) submit(n int) error {
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
	if err := c.do(callSubmit, pathSubmit); err != nil {
		return err
	}
	before := len(c.ledger.submitted)
	c.ledger.submitted = numbersAfter(c.ledger.submitted, c.answer, keyID, n)
	if got := len(c.ledger.submitted) - before; got != n {
		return fmt.Errorf("submit of %d tasks: the answer has %d ids: %s", n, got, c.answer)
	}
	return nil
}

var errNone = errors.New("nothing to claim")

// claim claims up to n tasks in one call, or returns errNone. The slice is valid until the next call.
func (c *conn) claim(n int) ([]held, error) {
	c.body = c.appendClaim(c.body[:0], n)
	err := c.do(callClaim, pathClaim)
	if err != nil && c.status == 404 {
		return nil, errNone
	}
	if err != nil {
		return nil, err
	}
	return c.claimed(callClaim, c.answer, n)
}

// claimed returns the claimed tasks in an answer, or a part of one, or errNone.
func (c *conn) claimed(kind call, answer []byte, n int) ([]held, error) {
	c.tasks = c.tasks[:0]
	for rest := answer; len(c.tasks) < n; {
		id, after, ok := numberAfter(rest, keyID)
		if !ok {
			break
		}
		token, after, ok := numberAfter(after, keyToken)
		if !ok {
			return nil, fmt.Errorf("%s: the answer has no token for task %d: %s", callNames[kind], id, c.answer)
		}
		c.tasks, rest = append(c.tasks, held{id, token}), after
	}
	if len(c.tasks) == 0 {
		return nil, errNone
	}
	return c.tasks, nil
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

// completeAndClaim completes a task and claims the next one in the same call; nil if no task is left.
func (c *conn) completeAndClaim(h held) (*held, error) {
	c.body = c.appendHold(append(c.body[:0], '{'), h)
	c.body = append(c.body, `,"claim":`...)
	c.body = append(c.appendClaim(c.body, 1), '}')
	if err := c.settle(callCompleteAndClaim, h); err != nil {
		return nil, err
	}
	_, claimed, ok := bytes.Cut(c.answer, keyClaimed)
	if !ok {
		return nil, fmt.Errorf("%s: the answer does not say what was claimed: %s", callNames[callCompleteAndClaim], c.answer)
	}
	tasks, err := c.claimed(callCompleteAndClaim, claimed, 1)
	switch {
	case errors.Is(err, errNone):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &tasks[0], nil
}

// completeAll completes the tasks in one call.
func (c *conn) completeAll(tasks []held) error {
	if c.batch == 1 {
		return c.complete(tasks[0])
	}
	c.body = append(c.body[:0], `{"ops":[`...)
	for i, h := range tasks {
		if i > 0 {
			c.body = append(c.body, ',')
		}
		c.body = append(c.body, `{"op":"complete","id":`...)
		c.body = strconv.AppendUint(c.body, h.id, 10)
		c.body = append(c.body, ',')
		c.body = append(c.appendHold(c.body, h), '}')
	}
	c.body = append(c.body, `]}`...)
	if err := c.do(callComplete, pathBatch); err != nil {
		return err
	}
	if !bytes.HasSuffix(c.answer, noneFailed) {
		return fmt.Errorf("%s of %d tasks: some were refused: %s", callNames[callComplete], len(tasks), c.answer)
	}
	// The first part comes before the results.
	results := bytes.Split(c.answer, keySuccess)[2:]
	if len(results) != len(tasks) {
		return fmt.Errorf("%s of %d tasks: the answer has %d results: %s", callNames[callComplete], len(tasks), len(results), c.answer)
	}
	for i, h := range tasks {
		if err := c.completed(h, results[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) complete(h held) error {
	c.body = append(c.appendHold(append(c.body[:0], '{'), h), '}')
	return c.settle(callComplete, h)
}

// settle sends c.body, which completes h, and checks the answer.
func (c *conn) settle(kind call, h held) error {
	c.id = strconv.AppendUint(c.id[:0], h.id, 10)
	if err := c.do(kind, pathTask, c.id, verbComplete); err != nil {
		return err
	}
	return c.completed(h, c.answer)
}

// completed checks that the answer says that h is completed, and records it.
func (c *conn) completed(h held, answer []byte) error {
	id, after, ok := numberAfter(answer, keyID)
	if !ok || id != h.id || !bytes.Contains(after, isCompleted) {
		return fmt.Errorf("complete of task %d: the answer does not say that it is completed: %s", h.id, answer)
	}
	c.ledger.completed = append(c.ledger.completed, h.id)
	return nil
}

// appendHold appends the worker and the token of a claim, without braces.
func (c *conn) appendHold(b []byte, h held) []byte {
	b = append(b, `"worker_id":"`...)
	b = append(b, c.worker...)
	b = append(b, `","claim_token":`...)
	return strconv.AppendUint(b, h.token, 10)
}

// numbersAfter appends up to limit of the numbers that follow key in body.
func numbersAfter(ns []uint64, body, key []byte, limit int) []uint64 {
	for range limit {
		n, after, ok := numberAfter(body, key)
		if !ok {
			break
		}
		ns, body = append(ns, n), after
	}
	return ns
}

// numberAfter returns the first number after key in body, and the rest. ok is false if there is no such number.
func numberAfter(body, key []byte) (n uint64, after []byte, ok bool) {
	for {
		if _, body, ok = bytes.Cut(body, key); !ok {
			return 0, nil, false
		}
		n, digits := number(body)
		if digits > 0 { // null is not a number
			return n, body[digits:], true
		}
	}
}
