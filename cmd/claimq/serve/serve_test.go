package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/cmd/claimq/child"
)

// beProgram in the environment makes the test binary a program that claimq work --serve runs.
const beProgram = "CLAIMQ_TEST_IS_PROGRAM"

// patience bounds every wait.
const patience = time.Minute

func TestMain(m *testing.M) {
	if how := os.Getenv(beProgram); how != "" {
		be(how)
		return
	}
	os.Exit(m.Run())
}

// speaker is the program's side.
type speaker struct {
	conn  net.Conn
	lines *bufio.Scanner
}

func newSpeaker(conn net.Conn) *speaker {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, lineBytesMax)
	return &speaker{conn, lines}
}

func (s *speaker) say(text string) { _, _ = s.conn.Write([]byte(text + "\n")) }

// be is the program. The params of a task say what it does.
func be(how string) {
	file := os.NewFile(programFD, "socket")
	conn, err := net.FileConn(file)
	if err != nil {
		panic(err)
	}
	_ = file.Close()
	s := newSpeaker(conn)
	switch how {
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin) // which is empty
		select {}
	case "old":
		s.say(`{"kind":"hello","protocol":0,"types":[{"type":"job"}],"concurrency":1}`)
	case "ends":
		os.Exit(0)
	case "dies":
		fmt.Fprintln(os.Stderr, "no module named worker")
		os.Exit(4)
	}
	concurrency, _ := strconv.Atoi(how)
	s.say(fmt.Sprintf(`{"kind":"hello","protocol":1,"types":[{"type":"job","timeout_ms":%d},{"type":"short","timeout_ms":100}],"concurrency":%d,"client":"test"}`,
		patience.Milliseconds(), max(concurrency, 1)))
	for s.lines.Scan() {
		var m taskMessage
		if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
			panic(err)
		}
		switch m.Kind {
		case kindStop:
			return
		case kindTask:
			s.do(&m)
		}
	}
}

func (s *speaker) do(m *taskMessage) {
	var what string
	_ = json.Unmarshal(m.Params, &what)
	of := fmt.Sprintf(`"id":%d,"token":%d`, m.ID, m.Token)
	switch what {
	case "die":
		fmt.Fprint(os.Stderr, strings.Repeat("first\n", 2_000)+"Traceback\nKeyError: 'to'\n")
		os.Exit(3)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "garbage":
		s.say("a print that went astray")
		select {}
	case "unknown":
		s.say(`{"kind":"finished",` + of + `}`)
	case "wrong":
		s.say(`{"kind":"done","id":"7"}`)
	case "half":
		_, _ = s.conn.Write([]byte(`{"kind":"do`))
		os.Exit(0)
	case "pieces":
		for _, b := range []byte(`{"kind":"done",` + of + `,"result":1}` + "\n") {
			_, _ = s.conn.Write([]byte{b})
		}
	case "long":
		s.say(`{"kind":"fail",` + of + `,"error":"` + strings.Repeat("e", lineBytesMax) + `"}`)
	case "hello":
		s.say(`{"kind":"hello","protocol":1,"types":[{"type":"job"}],"concurrency":1}`)
	case "closes":
		_ = s.conn.Close()
		select {}
	case "shuts": // its own side, and waits for the other
		s.say(`{"kind":"done",` + of + `,"result":"shut"}`)
		_ = s.conn.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, s.conn)
		os.Exit(0)
	case "hangs":
		select {}
	case "silence":
	case "flood":
		for i := range 20_000 {
			s.say(fmt.Sprintf(`{"kind":"progress",%s,"progress":%d}`, of, i))
			s.say(`{"kind":"done","id":999,"token":999}`)
		}
		s.say(`{"kind":"done",` + of + `}`)
	case "last": // is told, and then it ends
		s.say(`{"kind":"done",` + of + `,"result":"last"}`)
		os.Exit(0)
	case "eats":
		eat()
		s.say(fmt.Sprintf(`{"kind":"done",%s,"result":%d}`, of, os.Getpid()))
	case "fails":
		s.say(`{"kind":"fail",` + of + `,"error":"no such address","permanent":true}`)
	case "follows":
		s.say(`{"kind":"done",` + of + `,"submit":[{"task_type":"next","params":1,"priority":7}]}`)
	case "follows badly":
		s.say(`{"kind":"done",` + of + `,"submit":[{"task_typ":"next"}]}`)
	default:
		s.say(fmt.Sprintf(`{"kind":"done",%s,"result":%d}`, of, os.Getpid()))
	}
}

// eat takes 256 MiB that Go does not know, because its race detector would take several times as much.
func eat() {
	eaten, err := syscall.Mmap(-1, 0, 256<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(eaten); i += os.Getpagesize() {
		eaten[i] = 1
	}
}

// output collects a worker's output.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lab is a server and a Run.
type lab struct {
	t    *testing.T
	s    *clienttest.Server
	out  *output
	stop context.CancelFunc
	over chan error
}

func newLab(t *testing.T, how string, change func(*Options)) *lab {
	t.Helper()
	s := clienttest.New(t)
	return newLabOf(t, s, s.Client(), how, change)
}

// newLabOf is a lab whose Run asks another client.
func newLabOf(t *testing.T, s *clienttest.Server, c *client.Client, how string, change func(*Options)) *lab {
	t.Helper()
	l := &lab{t: t, s: s, out: &output{}, over: make(chan error, 1)}
	o := Options{
		Processes: 1, Timeout: time.Hour, Path: os.Args[0], Args: []string{"program"}, Environ: append(os.Environ(), beProgram+"="+how),
		Stdout: io.Discard, Out: child.NewOutput(l.out), ID: "w1", Counts: &Counts{},
		Worker: client.WorkerConfig{StopWait: client.NoStopWait},
	}
	if change != nil {
		change(&o)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() {
		_, err := Run(ctx, c, o, func(*client.Worker) {})
		l.over <- err
	}()
	t.Cleanup(l.end)
	return l
}

// end stops it, and waits.
func (l *lab) end() {
	l.t.Helper()
	l.stop()
	select {
	case err, ok := <-l.over:
		if ok && err != nil {
			l.t.Errorf("it ended with %v", err)
		}
		if ok {
			close(l.over)
		}
	case <-time.After(patience):
		l.t.Errorf("it does not end:\n%s", l.out)
	}
}

func (l *lab) submit(taskType, what string, attempts int) string {
	l.t.Helper()
	params, err := json.Marshal(what)
	if err != nil {
		l.t.Fatal(err)
	}
	id, err := l.s.Client().Submit(l.t.Context(), client.Task{TaskType: taskType, Payload: params, MaxAttempts: attempts})
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// until waits until the output has the text.
func (l *lab) until(what string) {
	l.t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(l.out.String(), what) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			l.t.Fatalf("it does not say %q but\n%s", what, l.out)
		}
	}
}

// Each attempt ends as the program ended it, and the next task is done.
func TestRun_faults(t *testing.T) {
	t.Parallel()
	l := newLab(t, "1", nil)
	for _, c := range []struct {
		what   string
		status client.TaskStatus
		text   string // a pattern of the error, or of the result
	}{
		{"die", client.StatusFailed, `(?s)^the program ended: KeyError: 'to' \(exit code 3\)\n\.\.\..*first\nTraceback\nKeyError: 'to'$`},
		{"killed", client.StatusFailed, `^the program ended: signal: killed$`},
		{"garbage", client.StatusFailed, `it broke the protocol: it is no message: .*a print that went astray`},
		{"unknown", client.StatusFailed, `it broke the protocol: its kind "finished" is not known`},
		{"wrong", client.StatusFailed, `it broke the protocol: it is no message: .* field programMessage\.id`},
		{"half", client.StatusFailed, `it broke the protocol: the connection ended within a line: .*kind`},
		{"pieces", client.StatusCompleted, `^1$`},
		{"long", client.StatusFailed, `it broke the protocol: a line of more than 8388608 bytes`},
		{"hello", client.StatusFailed, `it broke the protocol: it is a second hello`},
		{"closes", client.StatusFailed, `it closed its socket, and was killed`},
		{"flood", client.StatusCompleted, `^$`},
		{"fails", client.StatusFailed, `^no such address$`},
		{"follows badly", client.StatusFailed, `task_typ`},
		{"follows", client.StatusCompleted, `^$`},
		{"works", client.StatusCompleted, `^\d+$`},
		{"last", client.StatusCompleted, `^"last"$`}, // the program ends after it
	} {
		got := l.s.Await(l.submit("job", c.what, 1), c.status)
		if text := got.Error + string(got.Result); !regexp.MustCompile(c.text).MatchString(text) {
			t.Errorf("%s: %.300q, want %s", c.what, text, c.text)
		}
	}
	if next := l.s.Tasks("next"); len(next) != 1 || next[0].Priority != 7 {
		t.Errorf("the follow-ups are %+v", next)
	}
	l.until("answers about tasks that it does not have were dropped")
}

// A program that has closed its own side of the socket, and waits for the other to be closed, ends by
// itself.
func TestRun_halfClosed(t *testing.T) {
	t.Parallel()
	var counts *Counts
	l := newLab(t, "1", func(o *Options) { counts, o.closedMax = o.Counts, patience })
	l.s.Await(l.submit("job", "shuts", 1), client.StatusCompleted)
	deadline := time.After(patience)
	for counts.Started.Load() < 2 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("no process is begun again:\n%s", l.out)
		}
	}
	if counts.Died.Load() > 0 {
		t.Errorf("it was killed:\n%s", l.out)
	}
}

// A task that goes on when its time is over has its program killed. The others of the program are
// given back, and done by the next.
func TestRun_hangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, "3", nil)
	silent := l.submit("job", "silence", 3)
	l.s.Await(silent, client.StatusClaimed)
	hangs := l.submit("short", "silence", 1)
	if got := l.s.Await(hangs, client.StatusFailed); !regexp.MustCompile(`^the attempt took more than 100ms: .*was killed$`).MatchString(got.Error) {
		t.Errorf("%q", got.Error)
	}
	l.until("went on for 5s after it was cancelled (timeout): it is killed")
	if got := l.s.Await(silent, client.StatusClaimed); got.Attempts != 1 || got.Error != "" {
		t.Errorf("the task beside it is %+v", got)
	}
}

// A stop gives back what is not done in time.
func TestRun_stop(t *testing.T) {
	t.Parallel()
	l := newLab(t, "2", nil)
	id := l.submit("job", "hangs", 3)
	l.s.Await(id, client.StatusClaimed)
	l.end()
	if got := l.s.Await(id, client.StatusPending); got.Attempts != 0 {
		t.Errorf("%d attempts were counted: %s", got.Attempts, got.Error)
	}
}

// A process that has had its tasks ends, and another goes on.
func TestRun_tasksPerProcess(t *testing.T) {
	t.Parallel()
	l := newLab(t, "2", func(o *Options) { o.TasksPerProcess = 2 })
	pids := map[string]int{}
	for range 6 {
		pids[string(l.s.Await(l.submit("job", "works", 1), client.StatusCompleted).Result)]++
	}
	if len(pids) < 3 {
		t.Errorf("tasks of each process: %v", pids)
	}
	for pid, n := range pids {
		if n > 2 {
			t.Errorf("process %s had %d tasks", pid, n)
		}
	}
}

// A process that has more memory than it may have ends when it has answered, and another goes on.
func TestRun_memoryPerProcess(t *testing.T) {
	t.Parallel()
	l := newLab(t, "1", func(o *Options) { o.MemoryPerProcess = 192 << 20 })
	done := func(what string) string {
		t.Helper()
		return string(l.s.Await(l.submit("job", what, 1), client.StatusCompleted).Result)
	}
	first, large := done("works"), done("eats")
	l.until("bytes of memory: it is asked to end, and begun again")
	if next := done("works"); first != large || next == large {
		t.Errorf("the tasks were done by %s, %s and %s", first, large, next)
	}
}

// While no program runs nothing is claimed; those that die at their start are begun again, with a
// pause that grows.
func TestRun_start(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"dies": "no module named worker\nprocess 1, with 0 tasks under way: the program ended before its hello: no module named worker (exit code 4)\n",
		"ends": "process 1, with 0 tasks under way: the program ended before its hello: exit code 0\n",
		"old":  "protocol is 0: this claimq speaks 1", "silent": "",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, how, nil)
			id := l.submit("job", "works", 1)
			if want != "" {
				l.until(want)
			}
			if got := l.s.Await(id, client.StatusPending); got.Attempts != 0 {
				t.Errorf("it was tried %d times", got.Attempts)
			}
		})
	}
}

// While no node answers, a stop ends the programs without a word about them.
func TestRun_unanswered(t *testing.T) {
	t.Parallel()
	nodes, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	c, err := client.New(client.Config{Endpoints: []string{"http://" + nodes.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	counts := &Counts{}
	l := newLabOf(t, nil, c, "1", func(o *Options) { o.Counts = counts })
	asked, err := nodes.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	for deadline := time.After(patience); counts.Connected.Load() == 0; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatal("no program is started")
		}
	}
	l.end()
	if out := l.out.String(); strings.Contains(out, "process 1") {
		t.Errorf("it says\n%s", out)
	}
}

var transcriptPattern = regexp.MustCompile("(?s)<!-- transcript -->\n```text\n(.*?)```")

// The messages equal the transcript of docs/protocol.md.
func TestRun_transcript(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	found := transcriptPattern.FindSubmatch(page)
	if found == nil {
		t.Fatal("the page has no transcript")
	}
	path := filepath.Join(t.TempDir(), "s")
	l := newLab(t, "", func(o *Options) { o.Listen = path })
	l.until("waiting at ")
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := newSpeaker(conn)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	post := func(path, body string) {
		t.Helper()
		resp, err := http.Post(l.s.URL()+path, "application/json", strings.NewReader(body)) //nolint:noctx // of this test's server
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Fatalf("%s %s: %s", path, body, resp.Status)
		}
	}
	ends := map[string]client.TaskStatus{"1": client.StatusCompleted, "3": client.StatusScheduled, "4": client.StatusCancelled}
	lines := 0
	for line := range strings.Lines(string(found[1])) {
		line = strings.TrimSpace(line)
		lines++
		switch who, text, _ := strings.Cut(line, ":"); who {
		case "program":
			s.say(strings.TrimSpace(text))
			var m programMessage
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if m.Kind != kindHello && m.Kind != kindProgress {
				l.s.Await(strconv.FormatUint(m.ID, 10), ends[strconv.FormatUint(m.ID, 10)])
			}
		case "claimq":
			if !s.lines.Scan() || s.lines.Text() != strings.TrimSpace(text) {
				t.Fatalf("claimq says %s (%v), the page %s", s.lines.Text(), s.lines.Err(), text)
			}
		case "(submitted":
			post("/api/tasks", strings.TrimSuffix(text, ")"))
		case "(cancelled":
			post("/api/tasks/"+strings.TrimSpace(strings.TrimSuffix(text, ")"))+"/cancel", "{}")
		case "(stopped)":
			l.stop()
		case "(closed)":
			_ = conn.Close()
		default:
			t.Errorf("%q is no line of a transcript", line)
		}
	}
	l.end()
	if got := l.s.Await("1", client.StatusCompleted); string(got.Result) != `{"sent":1}` || lines < 15 {
		t.Errorf("after %d lines the first task is %+v", lines, got)
	}
}

// The steps of a done are added before it completes its step. Steps that the server does not take fail the task.
func TestRun_addsSteps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l := newLab(t, "", func(o *Options) { o.Listen = path })
	l.until("waiting at ")
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := newSpeaker(conn)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var parent client.Task
	parent.AddStep("plan", client.Task{TaskType: "job", Payload: []byte("1")})
	if _, err := l.s.Client().Submit(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	s.say(`{"kind":"hello","protocol":1,"types":[{"type":"job"}],"concurrency":1}`)
	for _, answer := range []string{
		`"steps":[{"step":"part","task_type":"job","params":2},{"step":"sum","task_type":"job","params":3,"depends_on":["part","plan"]}]`,
		`"steps":null`,
		`"steps":[{"step":"part","task_type":"job","params":9}]`,
	} {
		var m taskMessage
		for m.Kind != kindTask {
			if !s.lines.Scan() {
				t.Fatalf("nothing came: %v\n%s", s.lines.Err(), l.out)
			}
			if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
		}
		s.say(fmt.Sprintf(`{"kind":"done","id":%d,"token":%d,%s}`, m.ID, m.Token, answer))
	}
	got := l.s.Await("1", client.StatusFailed)
	if len(got.Steps) != 3 || got.Steps[1].Task.Status != client.StatusCompleted || !strings.Contains(got.Error, "step sum failed: ") || !strings.Contains(got.Error, "steps[0].step") {
		t.Errorf("the parent is %+v", got)
	}
	_ = conn.Close()
}

// A step is handed the results of those that it depends on.
func TestRun_dependencies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l := newLab(t, "", func(o *Options) { o.Listen = path })
	l.until("waiting at ")
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := newSpeaker(conn)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var parent client.Task
	parent.AddStep("one", client.Task{TaskType: "job", Payload: []byte("1")})
	parent.AddStep("both", client.Task{TaskType: "job", Payload: []byte("2")}, "one")
	if _, err := l.s.Client().Submit(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	s.say(`{"kind":"hello","protocol":1,"types":[{"type":"job"}],"concurrency":1}`)
	next := func() (m taskMessage) {
		t.Helper()
		for m.Kind != kindTask {
			if !s.lines.Scan() {
				t.Fatalf("nothing came: %v\n%s", s.lines.Err(), l.out)
			}
			if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	one := next()
	s.say(fmt.Sprintf(`{"kind":"done","id":%d,"token":%d,"result":[1]}`, one.ID, one.Token))
	both := next()
	if both.Step != "both" || string(both.ParentID) != "1" || string(both.Dependencies["one"].Result) != "[1]" {
		t.Errorf("it is handed %+v", both)
	}
	_ = conn.Close()
}
