package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/claimq/claimq/cmd/claimq/child"
)

// program is one connection, and the tasks that are under way on it.
type program struct {
	name string // in lines about it
	pool *pool
	conn net.Conn
	// end ends it at once, whatever it does.
	end func()

	over chan struct{} // closed when it has ended, and failure is set

	mu       sync.Mutex // guards what follows
	hello    *said      // nil: it has said none, or was not answered yet
	spoke    bool       // it has said hello
	tasks    map[key]*handling
	ofType   map[string]int
	taken    int   // tasks, from the start
	stopping bool  // it gets no more tasks
	fault    error // why it is ended; nil: it ended by itself
	ended    bool  // it is ended for the sake of one task, or of the stop: the others are not at fault
	failure  error // of the tasks that it had

	outMu   sync.Mutex // guards what follows
	out     []byte     // that waits to be written
	outSent chan struct{}
}

// key names a claim.
type key struct {
	id    uint64
	token int64
}

// handling is a task that a program has.
type handling struct {
	key      key
	p        *program
	taskType string
	answer   chan *said // has the answer

	mu        sync.Mutex
	progress  json.RawMessage // that waits; nil: none
	send      func()          // sends it, and what comes meanwhile; nil before the handler waits
	reporting bool
}

func newProgram(name string, p *pool, conn net.Conn, end func()) *program {
	return &program{
		name: name, pool: p, conn: conn, end: end, over: make(chan struct{}),
		tasks: map[key]*handling{}, ofType: map[string]int{}, outSent: make(chan struct{}, 1),
	}
}

// errHalf is returned for a line without an end.
var errHalf = errors.New("the connection ended within a line")

// splitLines is bufio.ScanLines that refuses a line without an end.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, fmt.Errorf("%w: %s", errHalf, shown(data))
	}
	return 0, nil, nil
}

// listen takes what the program says, until its connection ends. The error is a fault of the
// program.
func (p *program) listen() error {
	s := bufio.NewScanner(p.conn)
	s.Buffer(make([]byte, 0, 64<<10), lineBytesMax)
	s.Split(splitLines)
	for s.Scan() {
		message, err := read(s.Bytes())
		if err == nil {
			err = p.hear(message, len(s.Bytes())+1)
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
	return nil // whatever else ended the connection, it is over
}

// hear takes a message, whose line has size bytes.
func (p *program) hear(s *said, size int) error {
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
		p.pool.unasked(p, s)
	case s.Kind == kindProgress:
		h.report(s.Progress)
	default:
		h.answer <- s
		p.pool.changed()
	}
	return nil
}

// drop takes a task away. The caller holds the lock.
func (p *program) drop(h *handling) {
	delete(p.tasks, h.key)
	p.ofType[h.taskType]--
}

// room returns how many tasks the program has, and whether it takes one more of the type.
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

// take gives the program a task for which it has room. It is asked to stop when it has had as
// many as it is to have.
func (p *program) take(h *handling, line []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return false
	}
	p.tasks[h.key] = h
	p.ofType[h.taskType]++
	p.taken++
	p.say(line)
	if most := p.pool.o.TasksPerProcess; most > 0 && p.taken >= most {
		p.stopLocked()
	}
	return true
}

// stop asks the program to finish what it has, and to end.
func (p *program) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hello == nil { // it has nothing to finish
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
	p.tell(stopMessage{kindStop})
}

// tell says a message that cannot fail to be one.
func (p *program) tell(message any) {
	line, _ := lineOf(message)
	p.say(line)
}

// say has a line written. What waits is bounded by the tasks that the program takes: each has a
// line of its own, and one that cancels it.
func (p *program) say(line []byte) {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	p.out = append(p.out, line...)
	select {
	case p.outSent <- struct{}{}:
	default:
	}
}

// write writes what is said, until the program has ended.
func (p *program) write() {
	var spare []byte
	for {
		select {
		case <-p.outSent:
		case <-p.over:
			return
		}
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

// kill ends the program at once, for a fault of its own or, if ended is true, of one of its
// tasks, or of nobody.
func (p *program) kill(fault error, ended bool) {
	p.mu.Lock()
	if p.fault == nil {
		p.fault, p.ended = fault, ended
	}
	p.stopping = true
	p.mu.Unlock()
	p.end()
}

// run talks to the program until its connection ends, and hands the outcome to its tasks. how waits for
// the process, if it is one, and says how that ended. ok is false if the program took no task.
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
	if fault != nil && !ended { // what was ended may have been within a line, or at its hello
		p.pool.o.Counts.LinesRefused.Add(1)
		p.kill(fault, false)
	}
	p.mu.Lock()
	p.stopping = true // nothing that it is told reaches it
	p.mu.Unlock()
	_ = p.conn.Close() // one that has closed its side alone may wait for it
	status, err := how()
	p.mu.Lock()
	why := "the program ended: "
	switch {
	case p.fault != nil:
		why = "the program was ended: " + p.fault.Error() + "\n"
	case !p.spoke:
		why = "the program ended before its hello: "
	}
	p.failure = &failure{text: why + status, innocent: p.ended, terminated: child.Terminated(err)}
	ok = p.taken > 0
	tasks := len(p.tasks)
	// It may end by itself between two tasks. One that never had any is of no use, and is begun again and again.
	asked := p.fault == nil && (p.ended || tasks == 0 && err == nil && (ok || told))
	logged := asked || p.ended // of what is killed for a task the log has a line
	p.mu.Unlock()
	close(p.over)
	if !asked {
		p.pool.o.Counts.Died.Add(1)
	}
	if !logged {
		status, _, _ = strings.Cut(status, "\n") // what follows is its standard error, which was passed on
		p.pool.log("%s, with %s under way: %s%s", p.name, counted(tasks), why, status)
	}
	return ok
}

// failure is how a program ended with tasks under way.
type failure struct {
	text       string
	innocent   bool // none of the tasks that it is handed to is at fault
	terminated bool // by SIGTERM
}

func (f *failure) Error() string { return f.text }

func counted(tasks int) string {
	if tasks == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", tasks)
}
