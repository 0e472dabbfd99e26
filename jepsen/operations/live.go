package operations

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/internal/procs"
)

// beginning is a place before all events.
const beginning = "0.0"

// Errors of readers that follow the trail.
var (
	// errFollower is returned when the command that follows the trail ended by itself.
	errFollower = errors.New("claimq events --follow ended")
	// errStreamEnded is returned when a node ended a stream that can be resumed.
	errStreamEnded = errors.New("the stream has ended")
	// errNoEvent is returned when a stream contains something else instead of an event.
	errNoEvent = errors.New("what a stream told is no event")
)

// follow starts readers that follow the trail until the run ends: the Go client, the command line,
// and a client of server-sent events. All use one address, at which the current cluster answers.
func (r *run) follow() ([]*reader, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r.endFollowing = func() {
		cancel()
		r.following.Wait()
	}
	url, err := r.openDoor(ctx)
	if err != nil {
		return nil, err
	}
	byClient, err := r.followByClient(ctx, url)
	if err != nil {
		return nil, err
	}
	byCommand, err := r.followByCommand(ctx, url)
	if err != nil {
		return nil, err
	}
	source := &eventSource{url: url + "/api/events?after=" + beginning}
	r.following.Go(func() { source.run(ctx) })
	return []*reader{
		telling("that follows by the client", byClient),
		telling("that follows by the command line", byCommand),
		telling("of a stream", source.kept),
	}, nil
}

// openDoor listens at an address that outlives a cluster, like a load balancer's: connections go in
// turn to the running nodes. It returns its URL. It is closed with ctx.
func (r *run) openDoor(ctx context.Context) (url string, err error) {
	var config net.ListenConfig
	door, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = door.Close() })
	r.following.Go(func() {
		for number := 0; ; number++ {
			conn, err := door.Accept()
			if err != nil {
				return
			}
			r.following.Go(func() { r.letThrough(ctx, conn, number) })
		}
	})
	return "http://" + door.Addr().String(), nil
}

// letThrough forwards a reader's connection to a node until one of them closes it, or ctx ends.
func (r *run) letThrough(ctx context.Context, reader net.Conn, number int) {
	defer func() { _ = reader.Close() }()
	nodes := slices.DeleteFunc(slices.Clone(r.now.Load().Nodes), func(n *procs.Node) bool { return !n.Running() })
	if len(nodes) == 0 {
		return
	}
	var dialer net.Dialer
	node, err := dialer.DialContext(ctx, "tcp", nodes[number%len(nodes)].HTTPAddr)
	if err != nil {
		return
	}
	end := func() {
		_ = reader.Close()
		_ = node.Close()
	}
	defer context.AfterFunc(ctx, end)()
	var carrying sync.WaitGroup
	for to, from := range map[net.Conn]net.Conn{node: reader, reader: node} {
		carrying.Go(func() {
			defer end()
			_, _ = io.Copy(to, from) // it ends with the connection
		})
	}
	carrying.Wait()
}

// followByClient has the Go client follow the trail.
func (r *run) followByClient(ctx context.Context, url string) (kept func() ([]told, error), err error) {
	c, err := client.New(client.Config{Endpoints: []string{url}})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var events []told
	var ended error
	r.following.Go(func() {
		for e, err := range c.Follow(ctx, client.EventFilter{After: beginning}) {
			mu.Lock()
			if ended = err; err == nil {
				events = append(events, tell(e.Place, e.Event, e.TaskID, e.Token, e.Time, e.Message))
			}
			mu.Unlock()
		}
		_ = c.Close() // it is not used any more
	})
	return func() ([]told, error) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(events), ended
	}, nil
}

// followByCommand follows the trail with the command line, which prints the format of an audit
// file.
func (r *run) followByCommand(ctx context.Context, url string) (kept func() ([]told, error), err error) {
	file := filepath.Join(r.cfg.Dir, "followed.jsonl")
	printed, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer // read once it has ended
	cmd := exec.CommandContext(ctx, r.cfg.Binary, "events", "--follow", "--after", beginning, "--output", "json")
	cmd.Env = append(os.Environ(), "CLAIMQ_ENDPOINTS="+url)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = printed, &said, procs.ChildAttr()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, printed.Close())
	}
	ended := make(chan struct{})
	r.following.Go(func() {
		defer close(ended)
		_ = errors.Join(cmd.Wait(), printed.Close()) // it is killed with ctx
	})
	return func() ([]told, error) {
		select {
		case <-ended:
			return nil, commandEnded(said.String())
		default:
			return audited(file)
		}
	}, nil
}

// commandEnded returns why the command that follows the trail ended, judging by its output.
func commandEnded(said string) error {
	for code, why := range map[wire.Code]error{wire.CodePlaceAhead: client.ErrPlaceAhead, wire.CodeEventsGone: client.ErrEventsGone} {
		if strings.Contains(said, "("+string(code)+")") {
			return fmt.Errorf("%w: %w: %s", errFollower, why, said)
		}
	}
	return fmt.Errorf("%w: %s", errFollower, said)
}

// eventSource follows the trail like a browser's EventSource: when a stream ends, it opens the next
// one with the id of the last block.
type eventSource struct {
	url string

	mu     sync.Mutex // guards the fields below
	events []told
	ended  error // why nothing more comes
}

// run follows until ctx ends or a node refuses to go on.
func (s *eventSource) run(ctx context.Context) {
	last := ""
	for {
		err := s.stream(ctx, &last)
		if errors.Is(err, procs.ErrRefused) || errors.Is(err, errNoEvent) {
			s.mu.Lock()
			s.ended = err
			s.mu.Unlock()
			return
		}
		if !pause.For(ctx, pollPause) {
			return
		}
	}
}

// stream reads one stream after the id of the last block, which it updates.
func (s *eventSource) stream(ctx context.Context, last *string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return s.read(resp.Body, last)
	}
	why, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < http.StatusInternalServerError {
		err = fmt.Errorf("%w: %s: %s", procs.ErrRefused, resp.Status, why)
	}
	return err
}

// read reads the blocks of a stream. A truncated one is ignored.
func (s *eventSource) read(stream io.Reader, last *string) error {
	var id, data, event string
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data = value
		case name == "event":
			event = value
		case lines.Text() == "": // not a comment
			if event == "error" {
				return refusedStream(data)
			}
			if err := s.take(data); err != nil {
				return err
			}
			if id != "" {
				*last = id
			}
			id, data, event = "", "", ""
		}
	}
	return lines.Err()
}

// refusedStream returns why a node ended a stream: ErrRefused if the next one would be refused,
// too.
func refusedStream(data string) error {
	var why wire.Refusal
	if err := json.Unmarshal([]byte(data), &why); err != nil || why.Code.Status() >= http.StatusInternalServerError {
		return errors.Join(err, errStreamEnded)
	}
	return fmt.Errorf("%w: %s", procs.ErrRefused, data)
}

// take records the event of a block, if it has one.
func (s *eventSource) take(data string) error {
	if data == "" {
		return nil
	}
	e, err := read(data)
	if err != nil {
		return fmt.Errorf("%w: %w: %s", errNoEvent, err, data)
	}
	s.mu.Lock()
	s.events = append(s.events, e)
	s.mu.Unlock()
	return nil
}

// kept returns all events so far.
func (s *eventSource) kept() ([]told, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events), s.ended
}
