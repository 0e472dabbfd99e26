package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/bits"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/conntest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/nodes"
)

const bigList = "GET /api/tasks?include=params HTTP/1.1\r\nHost: localhost\r\n\r\n"

// fillBig submits count tasks with 1,000,000 bytes of params each.
func fillBig(t *testing.T, s *Server, count int) {
	t.Helper()
	for range count {
		s.call(t, "POST /api/tasks", `{"params":"`+strings.Repeat("x", 1_000_000)+`"}`).good(t, 201)
	}
}

// TestServer_Answers ensures that unread answers take no more memory than permitted, that a further one is refused
// while small ones continue, and that answers that were read or given up take none.
func TestServer_Answers(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, func(c *Config) { c.AnswersBytes = 10 << 20 })
	fillBig(t, s, 6)
	addr := listen(t, s)
	silent := dial(t, addr, bigList)
	waitFor(t, func() bool { return s.core.port.Answers.Reserved() > 6_000_000 })
	for range 3 {
		got := raw(t, addr, bigList)
		if f := got.refused(t, wire.CodeOverloaded); f["reason"] != "answers" || got.header["Retry-After"] != "1" {
			t.Errorf("another: %v, Retry-After %q", f, got.header["Retry-After"])
		}
	}
	if got := raw(t, addr, "GET /api/stats HTTP/1.1\r\nHost: localhost\r\n\r\n"); got.status != 200 {
		t.Errorf("a small one: %d %.200s", got.status, got.body)
	}
	reader := bufio.NewReader(silent)
	if got := receive(t, reader); got.status != 200 || len(got.body) < 6_000_000 {
		t.Errorf("the first: %d, %d bytes", got.status, len(got.body))
	}
	waitFor(t, func() bool { return s.core.port.Answers.Reserved() == 0 })
	if _, err := io.WriteString(silent, bigList); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.Answers.Reserved() > 6_000_000 })
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.Answers.Reserved() == 0 })
}

// TestServer_SharedAnswers ensures that answers that everyone may get, and leave unread, reserve no memory,
// which clients with keys need.
func TestServer_SharedAnswers(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(testKey("operator")), func(c *Config) { c.AnswersBytes = 1 })
	if !s.core.port.Answers.TryReserve(1) {
		t.Fatal("nothing fits from the start")
	}
	if got := s.call(t, "GET /openapi.json", ""); got.status != 200 || len(got.body) < 2*answerFreeBytes {
		t.Errorf("%d, %d bytes: %.200s", got.status, len(got.body), got.body)
	}
	if n := s.core.port.Answers.Reserved(); n != 1 {
		t.Errorf("%d bytes are reserved", n)
	}
}

// TestServer_idleKeepsNoBodies ensures that idle connections, of which there may be thousands, do not keep the bodies
// and answers of earlier requests. It is not parallel because it measures the process's heap.
func TestServer_idleKeepsNoBodies(t *testing.T) {
	s, _ := setup(t)
	fillBig(t, s, 6)
	addr := listen(t, s)
	submit := "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6000000\r\n\r\n" + strings.Repeat("x", 6_000_000)
	before := heap()
	for _, request := range []string{bigList, submit} {
		for range 6 {
			conn := dial(t, addr, request)
			if got := receive(t, bufio.NewReader(conn)); got.status != 200 && got.status != 400 {
				t.Fatalf("%d %.200s", got.status, got.body)
			}
		}
		if more := heap() - before; more > 8_000_000 {
			t.Errorf("6 idle connections keep %d bytes after %.20q", more, request)
		}
	}
}

// TestServer_idleKeepsSmallBodies ensures that an idle connection keeps only as much of its last request's body as
// most requests need. It is not parallel because it measures the process's heap.
func TestServer_idleKeepsSmallBodies(t *testing.T) {
	s, _ := setup(t)
	addr := listen(t, s)
	const count, length = 300, 30_000
	submit := "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
	conns := make([]net.Conn, count)
	for i := range conns {
		conns[i] = dial(t, addr, submit+"2\r\n\r\n{}")
		receive(t, bufio.NewReader(conns[i]))
	}
	before := heap()
	large := submit + strconv.Itoa(length) + "\r\n\r\n" + strings.Repeat("x", length)
	for _, conn := range conns {
		if _, err := io.WriteString(conn, large); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, bufio.NewReader(conn)); got.status != 400 {
			t.Fatalf("%d %.200s", got.status, got.body)
		}
	}
	if more := (heap() - before) / count; more > 2*keptBodyBytes {
		t.Errorf("an idle connection keeps %d bytes of its last body", more)
	}
	runtime.KeepAlive(s)
}

// TestServer_buffersGoRound ensures that the buffers of large answers are reused, but not before these are written:
// each connection gets its own tasks.
func TestServer_buffersGoRound(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	const tasks, clients, rounds = 60, 8, 40
	var calls sync.WaitGroup
	for i := range clients {
		letter := string(rune('a' + i))
		params := strings.Repeat(letter, 1_000)
		for range tasks {
			s.call(t, "POST /api/tasks", `{"task_type":"`+letter+`","params":"`+params+`"}`).good(t, 201)
		}
		body := `{"worker_id":"w","task_types":["` + letter + `"],"limit":60,"claim_request_id":"` + letter + `"}`
		request := "POST /api/tasks/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
		conn := dial(t, addr, request)
		calls.Go(func() {
			answers := bufio.NewReader(conn)
			for range rounds {
				got := receive(t, answers)
				if n := strings.Count(got.body, params); n != tasks {
					t.Errorf("%s: %d of %d tasks, %d %.200s", letter, n, tasks, got.status, got.body)
				}
				if _, err := io.WriteString(conn, request); err != nil {
					t.Error(err)
				}
			}
			receive(t, answers)
		})
	}
	calls.Wait()
	if room := cap(s.core.port.Buffers.Get(0)); room < tasks*1_000 {
		t.Errorf("a buffer of %d bytes was kept", room)
	}
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	runtime.GC() // the second one empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // less than there is memory
}

// TestServer_forwardedAnswers ensures that a follower reserves memory for a large answer before it reads that from the
// leader. If there is none, a read is refused, and the answer to a mutation waits for it.
func TestServer_forwardedAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		follower, leader, _, node := setupPair(t)
		fillBig(t, leader, 1)
		follower.core.port.Answers.TryReserve(follower.cfg.AnswersBytes)
		full := follower.core.port.Answers.Reserved()
		if f := follower.call(t, "GET /api/tasks?include=params", "").refused(t, wire.CodeOverloaded); f["reason"] != "answers" {
			t.Errorf("a read: %v", f)
		}
		follower.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`).refused(t, wire.CodeOutcomeUnknown)
		if got := node.Machine.Get(1); got.Status != fsm.StatusPending || got.ClaimedAt == 0 {
			t.Errorf("what nobody can ask for again is %s", got.Status)
		}
		follower.call(t, "POST /api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`).refused(t, wire.CodeOutcomeUnknown)
		time.AfterFunc(time.Second, func() { follower.core.port.Answers.Free(full) })
		a := follower.call(t, "POST /api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`).good(t, 200)
		if a.Task == nil || len(a.Task.Params) < 1_000_000 {
			t.Errorf("the repeat: %+v", a.Task)
		}
		if n := follower.core.port.Answers.Reserved(); n != 0 {
			t.Errorf("%d bytes are reserved", n)
		}
	})
}

// TestServer_AnswerOfWhatWasDone ensures that the answer about a mutation waits for memory, and that the outcome is
// called unknown if none comes free in time.
func TestServer_AnswerOfWhatWasDone(t *testing.T) {
	t.Parallel()
	s, node := setup(t, func(c *Config) { c.AnswersBytes, c.Wait = 1<<20, time.Second })
	fillBig(t, s, 1)
	s.core.port.Answers.TryReserve(1 << 20)
	s.call(t, "POST /api/tasks/claim", `{"worker_id":"w"}`).refused(t, wire.CodeOutcomeUnknown)
	if got := node.Machine.Get(1); got.Status != fsm.StatusPending || got.ClaimedAt == 0 {
		t.Errorf("what nobody can ask for again is %s", got.Status)
	}
	s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`).refused(t, wire.CodeOutcomeUnknown)
	s.core.port.Answers.Free(1 << 20)
	a := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","claim_request_id":"r"}`).good(t, 200)
	if a.Task == nil || a.Task.WorkerID == nil || *a.Task.WorkerID != "w" {
		t.Errorf("the repeat: %+v", a.Task)
	}
	if n := s.core.port.Answers.Reserved(); n != 0 {
		t.Errorf("%d bytes are reserved", n)
	}
}

// TestServer_LabelsReserve ensures that an answer about tasks with many labels waits for all its memory before it is
// made.
func TestServer_LabelsReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := setup(t, func(c *Config) { c.AnswersBytes = 1 << 20 })
		labels := make([]string, 16)
		for i := range labels {
			labels[i] = fmt.Sprintf(`"%064d":"%064d"`, i, i)
		}
		task := `{"params":1,"labels":{` + strings.Join(labels, ",") + `}}`
		s.call(t, "POST /api/tasks", `{"tasks":[`+strings.Repeat(task+",", 99)+task+`]}`).good(t, 200)
		most := s.cfg.AnswersBytes
		s.core.port.Answers.TryReserve(most - 100_000)
		time.AfterFunc(time.Second, func() { s.core.port.Answers.Free(most - 100_000) })
		a := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","limit":100}`).good(t, 200)
		if len(a.Tasks) != 100 || s.core.port.Answers.Reserved() != 0 {
			t.Errorf("%d tasks, and %d bytes are reserved", len(a.Tasks), s.core.port.Answers.Reserved())
		}
	})
}

// TestServer_ReserveResult ensures that a mutation with a possibly large result waits for memory before it is done, and
// is refused without being written if none comes free, so that results waiting for memory are bounded. Small ones
// continue.
func TestServer_ReserveResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		s.call(t, "POST /api/tasks", `{"tasks":[`+strings.Repeat(`{"params":1},`, 199)+`{"params":1}]}`).good(t, 200)
		results := &s.core.port.Results
		results.TryReserve(s.cfg.AnswersBytes)
		claims := strings.Repeat(`{"op":"claim","worker_id":"w"},`, 99) + `{"op":"claim","worker_id":"w"}`
		for target, body := range map[string]string{
			"POST /api/tasks/claim": `{"worker_id":"w","limit":100}`,
			"POST /api/batch":       `{"ops":[` + claims + `]}`,
		} {
			if f := s.call(t, target, body).refused(t, wire.CodeOverloaded); f["reason"] != "answers" {
				t.Errorf("%s: %v", target, f)
			}
		}
		if n := node.Machine.ClaimCount(); n != 0 {
			t.Errorf("%d tasks are claimed", n)
		}
		s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","limit":10}`).good(t, 200)
		time.AfterFunc(time.Second, func() { results.Free(s.cfg.AnswersBytes) })
		if a := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","limit":100}`).good(t, 200); len(a.Tasks) != 100 {
			t.Errorf("%d tasks", len(a.Tasks))
		}
		if n := results.Reserved(); n != 0 {
			t.Errorf("%d bytes are reserved", n)
		}
	})
}

// TestServer_AnswerAfterAWait ensures that the answer to a claim that waited long waits for memory like any other.
func TestServer_AnswerAfterAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t, func(c *Config) { c.AnswersBytes, c.Wait = 1<<20, time.Second })
		fillBig(t, s, 1)
		s.core.port.Answers.TryReserve(1 << 20)
		node.OnClaim = func(_ context.Context, cmd command.ClaimNext, wait time.Duration) (nodes.Proposed, error) {
			<-time.After(wait)
			time.AfterFunc(100*time.Millisecond, func() { s.core.port.Answers.Free(1 << 20) })
			return node.Apply(cmd)
		}
		if a := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","wait_ms":60000}`).good(t, 200); a.Task == nil {
			t.Errorf("%+v", a)
		}
	})
}

// TestServer_ReserveForAWait ensures that a claim that waits reserves the memory of its result before it is proposed, as
// one that does not, and is refused if none comes free.
func TestServer_ReserveForAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, node := setup(t)
		results := &s.core.port.Results
		results.TryReserve(s.cfg.AnswersBytes)
		if f := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","limit":1000,"wait_ms":60000}`).refused(t, wire.CodeOverloaded); f["reason"] != "answers" {
			t.Errorf("without memory: %v", f)
		}
		results.Free(s.cfg.AnswersBytes)
		s.call(t, "POST /api/tasks", `{"tasks":[{"params":1},{"params":2}]}`).good(t, 200)
		node.OnClaim = func(_ context.Context, cmd command.ClaimNext, _ time.Duration) (nodes.Proposed, error) {
			if n := results.Reserved(); n != 512_000 {
				t.Errorf("%d bytes are reserved for a result of 1,000 tasks", n)
			}
			return node.Apply(cmd)
		}
		if a := s.call(t, "POST /api/tasks/claim", `{"worker_id":"w","limit":1000,"wait_ms":60000}`).good(t, 200); len(a.Tasks) != 2 {
			t.Errorf("%d tasks", len(a.Tasks))
		}
		if n := results.Reserved(); n != 0 {
			t.Errorf("%d bytes are reserved", n)
		}
	})
}

// The buffer of a claim's answer is of a size that fasthttp keeps: at most the power of two above the answer.
func TestServer_claimBuffer(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for size := 1; size < 2_500; size += 100 {
		for range 10 {
			submitOne(t, s, `{"task_type":"mail","params":"`+strings.Repeat("x", size)+`"}`)
		}
		var ctx fasthttp.RequestCtx
		ctx.Init2(conntest.Nop{}, nil, true)
		ctx.Request.Header.SetMethod("POST")
		ctx.Request.SetRequestURI("/api/tasks/claim")
		ctx.Request.Header.SetHost("127.0.0.1:7400")
		ctx.Request.SetBodyString(`{"worker_id":"w","task_types":["mail"],"limit":10}`)
		ctx.Response.SwapBody(make([]byte, 0, 1)) // else it would get one that others have used
		s.core.handle(&ctx, false)
		b := ctx.Response.Body()
		if most := 1 << bits.Len(uint(len(b)-1)); len(b) < 10*size || cap(b) > most {
			t.Errorf("an answer of %d bytes has a buffer of %d", len(b), cap(b))
		}
	}
}
