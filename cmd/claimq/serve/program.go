package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/cmd/claimq/child"
)

// program is one connection with its tasks.
type program struct {
	name string // for log lines
	pool *pool
	conn net.Conn
	// end ends the program at once.
	end func()

	over chan struct{} // closed once it has ended and failure is set

	mu       sync.Mutex      // guards the fields below
	hello    *programMessage // nil until its hello has been answered
	spoke    bool            // it has sent its hello
	tasks    map[key]*handling
	ofType   map[string]int
	taken    int   // tasks so far
	stopping bool  // it gets no more tasks
	fault    error // why it is being ended; nil: it ended by itself
	ended    bool  // it is being ended because of one task or of a stop, so the other tasks are not at fault
	failure  error // for the tasks that it had

	outMu   sync.Mutex // guards the fields below
	out     []byte     // waiting to be written
	outSent chan struct{}
}

// key names a claim.
type key struct {
	id    uint64
	token int64
}

// handling is a task that a program is handling.
type handling struct {
	key      key
	p        *program
	taskType string
	answer   chan *programMessage // receives the answer

	mu        sync.Mutex         // guards the fields below
	progress  json.RawMessage    // waiting to be sent; nil: none
	send      func()             // sends progress until none waits; nil: none may be sent
	reporting bool               // send runs, or is about to
	endReport context.CancelFunc // ends the report that is being sent; nil: none is
}

func newProgram(name string, p *pool, conn net.Conn, end func()) *program {
	return &program{
		name: name, pool: p, conn: conn, end: end, over: make(chan struct{}),
		tasks: map[key]*handling{}, ofType: map[string]int{}, outSent: make(chan struct{}, 1),
	}
}

// errHalf is returned for a last line without a line end.
var errHalf = errors.New("the connection ended within a line")

// splitLines is bufio.ScanLines, except that it refuses a last line without a line end.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, fmt.Errorf("%w: %s", errHalf, shown(data))
	}
	return 0, nil, nil
}

// listen processes the program's messages until its connection ends. It returns an error if the program is at fault.
func (p *program) listen() error {
	s := bufio.NewScanner(p.conn)
	s.Buffer(make([]byte, 0, 64<<10), lineBytesMax)
	s.Split(splitLines)
	for s.Scan() {
		message, err := read(s.Bytes())
		if err == nil {
			err = p.receive(message, len(s.Bytes())+1)
		}
		if err != nil {
			return fmt.Errorf("it broke the protocol: %w: %s", err, shown(s.Bytes()))
		}
	}
	err := s.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("it broke the protocol: a line of more than %d bytes", lineBytesMax)
	case errors.Is(err, errHalf):
		return fmt.Errorf("it broke the protocol: %w", err)
	}
	return nil // the connection is over, whatever ended it
}

// receive processes a message. size is the length of its line.
func (p *program) receive(s *programMessage, size int) error {
	p.mu.Lock()
	greeted := p.hello != nil
	p.mu.Unlock()
	switch {
	case greeted && size > p.pool.limits.LineBytes:
		return fmt.Errorf("a line of more than %d bytes", p.pool.limits.LineBytes)
	case s.Kind == kindHello && greeted:
		return errors.New("it is a second hello")
	case s.Kind == kindHello:
		p.mu.Lock()
		p.spoke = true
		p.mu.Unlock()
		return p.pool.greeted(p, s)
	case !greeted:
		return errors.New("it comes before hello")
	}
	at := key{s.ID, s.Token}
	p.mu.Lock()
	h := p.tasks[at]
	if h != nil && s.Kind != kindProgress {
		p.drop(h)
	}
	p.mu.Unlock()
	switch {
	case h == nil:
		p.pool.dropAnswer(p, s)
	case s.Kind == kindProgress:
		h.report(s.Progress)
	default:
		h.answer <- s
		p.pool.freed()
	}
	return nil
}

// drop removes a task. The caller holds the lock.
func (p *program) drop(h *handling) {
	delete(p.tasks, h.key)
	p.ofType[h.taskType]--
}

// room returns how many tasks the program has, and whether it takes another one of the type.
func (p *program) room(taskType string) (has int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hello == nil || p.stopping || len(p.tasks) >= p.hello.Concurrency {
		return 0, false
	}
	for i := range p.hello.Types {
		if t := &p.hello.Types[i]; t.Type == taskType {
			return len(p.tasks), t.Concurrency == 0 || p.ofType[taskType] < t.Concurrency
		}
	}
	return 0, false
}

// take gives the program a task if it has room. Once it has had all the tasks it should get, it is asked to stop.
func (p *program) take(h *handling, line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.tasks[h.key] = h
	p.ofType[h.taskType]++
	p.taken++
	p.queueLine(line)
	if most := p.pool.o.TasksPerProcess; most > 0 && p.taken >= most {
		p.stopLocked()
	}
	return true
}

// stop asks the program to finish its tasks and end.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hello == nil { // it has no tasks to finish
		p.ended, p.stopping = true, true
		p.end()
		return
	}
	p.stopLocked()
}

func (p *program) stopLocked() {
	if p.stopping {
		return
	}
	p.stopping = true
	p.send(stopMessage{kindStop})
}

// send queues a message, which must be encodable.
func (p *program) send(message any) {
	line, _ := lineOf(message)
	p.queueLine(line)
}

// queueLine queues a line. The queue is bounded because a program takes a bounded number of tasks, and each needs at
// most its own line and one that cancels it.
func (p *program) queueLine(line []byte) {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	p.out = append(p.out, line...)
	select {
	case p.outSent <- struct{}{}:
	default:
	}
}

// write writes queued lines until the program has ended.
func (p *program) write() {
	var spare []byte
	for {
		select {
		case <-p.outSent:
		case <-p.over:
			return
		}
		// Tasks arrive together, and each is given by its own goroutine. Those that are ready share this write.
		runtime.Gosched()
		p.outMu.Lock()
		line := p.out
		p.out = spare[:0]
		p.outMu.Unlock()
		if _, err := p.conn.Write(line); err != nil {
			return // the program has ended, or is about to
		}
		if spare = line; cap(spare) > 64<<10 {
			spare = nil
		}
	}
}

// kill ends the program at once. fault is the program's own or, if ended is true, not: a task is the reason, or a stop.
func (p *program) kill(fault error, ended bool) {
	p.mu.Lock()
	if p.fault == nil {
		p.fault, p.ended = fault, ended
	}
	p.stopping = true
	p.mu.Unlock()
	p.end()
}

// run serves the connection until it ends, and then fails the remaining tasks. how waits for the process, if there is
// one, and says how it ended. ok is false if the program took no task.
func (p *program) run(how func() (status string, err error)) (ok bool) {
	go p.write()
	greeting := time.AfterFunc(p.pool.greetingMax, func() {
		p.mu.Lock()
		silent := !p.spoke
		p.mu.Unlock()
		if silent {
			p.kill(fmt.Errorf("it said no hello in %v", p.pool.greetingMax), false)
		}
	})
	defer greeting.Stop()
	fault := p.listen()
	p.mu.Lock()
	ended, told := p.ended, p.stopping
	p.mu.Unlock()
	if fault != nil && !ended { // a program that is being ended may have been cut off within a line or before its hello
		p.pool.o.Counts.LinesRefused.Add(1)
		p.kill(fault, false)
	}
	p.mu.Lock()
	p.stopping = true // nothing sent from now on would arrive
	p.mu.Unlock()
	_ = p.conn.Close() // a program that has closed only its own side may wait for this
	status, err := how()
	p.mu.Lock()
	why := "the program ended: "
	switch {
	case p.fault != nil:
		why = "the program was ended: " + p.fault.Error() + "\n"
	case !p.spoke:
		why = "the program ended before its hello: "
	}
	p.failure = &failure{text: why + status, noTaskAtFault: p.ended, terminated: child.Terminated(err)}
	ok = p.taken > 0
	tasks := len(p.tasks)
	// A program may end by itself between two tasks. One that never had a task is of no use, and would be started again
	// and again.
	asked := p.fault == nil && (p.ended || tasks == 0 && err == nil && (ok || told))
	logged := asked || p.ended // a program killed because of a task has its own log line
	p.mu.Unlock()
	close(p.over)
	if !asked {
		p.pool.o.Counts.Died.Add(1)
	}
	if !logged {
		status, _, _ = strings.Cut(status, "\n") // the rest is its standard error, which was passed on
		p.pool.log("%s, with %s under way: %s%s", p.name, counted(tasks), why, status)
	}
	return ok
}

// failure says how a program ended that had tasks.
type failure struct {
	text          string
	noTaskAtFault bool // none of its tasks is at fault
	terminated    bool // by SIGTERM
}

func (f *failure) Error() string { return f.text }

func counted(tasks int) string {
	if tasks == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", tasks)
}
