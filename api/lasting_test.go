package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/nodes"
)

// changingKeys are keys that a test can remove.
type changingKeys struct {
	mu   sync.Mutex
	keys []door.Key
}

func (c *changingKeys) set(keys ...door.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = keys
}

func (c *changingKeys) use(cfg *Config) {
	cfg.Keys = func() ([]door.Key, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Clone(c.keys), nil
	}
}

// reread makes the server reload its keys, as SIGHUP does.
func reread(t *testing.T, s *Server) {
	t.Helper()
	if _, _, err := s.readKeys(); err != nil {
		t.Fatal(err)
	}
}

// waitsForEver makes waiting claims and GETs of the node wait until their callers leave, and signals each on the
// channel.
func waitsForEver(n *nodetest.Node) <-chan struct{} {
	waiting := make(chan struct{}, 16)
	n.OnClaim = func(caller context.Context, _ command.ClaimNext, _ time.Duration) (nodes.Proposed, error) {
		waiting <- struct{}{}
		<-caller.Done()
		return nodes.Proposed{}, context.Cause(caller)
	}
	n.OnWaitEnded = func(caller context.Context, _ uint64, _ time.Duration) error {
		waiting <- struct{}{}
		<-caller.Done()
		return context.Cause(caller)
	}
	return waiting
}

// arrived returns an answer to one of the requests under way.
func arrived(t *testing.T, answers <-chan answer) answer {
	t.Helper()
	select {
	case a := <-answers:
		return a
	case <-time.After(testwait.Patience):
		t.Fatal("it still waits")
		return answer{}
	}
}

// A key gets half of the waits; another one has its own. When a key is removed or gets other types, its waiting
// requests end with 401, wherever they came in and whichever node reloads its keys.
func TestKeyShares_Waits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ through, reread string }{{"leader", "leader"}, {"follower", "follower"}, {"follower", "leader"}} {
		var keys changingKeys
		all := []door.Key{testKey("worker", "a"), testKey("worker", "b"), testKey("operator")}
		keys.set(all...)
		leader, node := setup(t, keys.use, func(cfg *Config) { cfg.WaitsPerKey = 2 })
		follower, followerNode := setup(t, keys.use, func(cfg *Config) { cfg.WaitsPerKey = 2 })
		followerNode.Follower = true
		passesTo(followerNode, leader)
		servers := map[string]*Server{"leader": leader, "follower": follower}
		leader.call(t, "POST /api/tasks", `{"params":1}`, with("operator")).good(t, 201)
		waiting := waitsForEver(node)
		answers := make(chan answer, 3)
		wait := func(target, body, key string) {
			go func() { answers <- servers[c.through].call(t, target, body, with(key)) }()
			<-waiting
		}
		const claim, body = "POST /api/tasks/claim", `{"worker_id":"w","wait_ms":60000}`
		wait(claim, body, "a")
		wait("GET /api/tasks/1?wait_ms=60000", "", "a")
		go func() { answers <- servers[c.through].call(t, claim, body, with("a")) }()
		if f := arrived(t, answers).refused(t, wire.CodeOverloaded); f["reason"] != "key_waits" {
			t.Errorf("%v: one more wait: %v", c, f)
		}
		wait(claim, body, "b")

		other := ofTypes(all[0], "mail") // it now has other types
		keys.set(other, all[1], all[2])
		reread(t, servers[c.reread])
		for range 2 {
			arrived(t, answers).refused(t, wire.CodeUnauthorized)
		}
		keys.set(all[2])
		reread(t, servers[c.reread])
		arrived(t, answers).refused(t, wire.CodeUnauthorized)
		for name, s := range servers {
			if s.core.shares.Callers() > 0 {
				t.Errorf("%v: the %s still counts what is over", c, name)
			}
		}
	}
}

// A request whose key is removed after its admission and before its wait does not wait.
func TestKeyShares_TakenOutBefore(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(allRoles()...))
	who := s.core.keys.Load().FindText([]byte(keyText("worker")))
	keyring, err := door.NewKeyring([]door.Key{testKey("operator")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.core.keys.Store(keyring)
	ctx, cancel := context.WithCancelCause(t.Context())
	leave, bad := s.core.shares.Hold(door.ShareWait, who, netip.Addr{}, cancel)
	if ended := (*door.KeyEnded)(nil); bad != nil || !errors.As(context.Cause(ctx), &ended) {
		t.Errorf("%v, %v", bad, context.Cause(ctx))
	}
	leave()
}

// Waiting requests are checked now and then, and continue until their key expires.
func TestKeyShares_Rechecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const life = 2*door.KeyRecheckInterval + door.KeyRecheckInterval/2
		keyring, err := door.NewKeyring([]door.Key{expiring(testKey("worker"), time.Now().Add(life))}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{core: &core{}}
		s.core.keys.Store(keyring)
		s.core.shares.Keys, s.core.shares.Limits[door.ShareWait] = &s.core.keys, 1
		ctx, cancel := context.WithCancelCause(t.Context())
		leave, bad := s.core.shares.Hold(door.ShareWait, keyring.FindText([]byte(keyText("worker"))), netip.Addr{}, cancel)
		if bad != nil {
			t.Fatal(bad)
		}
		<-time.After(life - 1)
		synctest.Wait()
		if err := context.Cause(ctx); err != nil {
			t.Errorf("it ended too early: %v", err)
		}
		<-time.After(1)
		synctest.Wait()
		if ended := (*door.KeyEnded)(nil); !errors.As(context.Cause(ctx), &ended) || ended.Why != door.FailExpired {
			t.Errorf("when its key expires: %v", context.Cause(ctx))
		}
		leave()
	})
}

// One key gets half of the streams, and a further one of another key is served. A stream ends at once when its key is
// removed; one of an open server ends when it gets keys.
func TestKeyShares_Streams(t *testing.T) {
	t.Parallel()
	var keys changingKeys
	s, _ := setup(t, keys.use)
	s.core.shares.Limits[door.ShareStream] = 1
	addr := listen(t, s)
	open := func(key string) *bufio.Reader {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(testwait.Patience)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /api/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%s\r\n\r\n", with(key))
		return bufio.NewReader(conn)
	}
	status := func(r *bufio.Reader) *http.Response {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	ends := func(name string, resp *http.Response) {
		t.Helper()
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(body), "event: error\ndata: {") || !strings.Contains(string(body), string(wire.CodeUnauthorized)) {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
	first, second := status(open("nobody")), status(open("nobody")) // without keys there is no bound per key
	keys.set(testKey("reader", "a"), testKey("reader", "b"))
	reread(t, s)
	ends("of an open server", first)
	ends("of an open server", second)

	a := status(open("a"))
	over := status(open("a"))
	body, _ := io.ReadAll(over.Body)
	if over.StatusCode != 503 || !strings.Contains(string(body), `"reason":"key_streams"`) {
		t.Errorf("one more stream: %d %s", over.StatusCode, body)
	}
	b := status(open("b"))
	if a.StatusCode != 200 || b.StatusCode != 200 {
		t.Errorf("streams: %d, %d", a.StatusCode, b.StatusCode)
	}
	keys.set(testKey("reader", "b"))
	reread(t, s)
	ends("of a key that was taken out", a)
	keys.set(testKey("reader", "c"))
	reread(t, s)
	ends("of the other", b)
}

// One key gets half of the connections and is told so, and others can still connect.
func TestKeyShares_Connections(t *testing.T) {
	t.Parallel()
	s, _ := setup(t, withKeys(testKey("operator", "a"), testKey("operator", "b")), func(c *Config) { c.Connections = 8 })
	addr := listen(t, s)
	request := func(key, more string) string {
		return "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\n" + with(key) + "\r\n" + more
	}
	small := "Content-Length: 12\r\n\r\n{\"params\":1}"
	var held []net.Conn
	for range 4 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		held = append(held, conn)
		_, _ = io.WriteString(conn, request("a", small))
		if got := receive(t, bufio.NewReader(conn)); got.status != 201 {
			t.Fatalf("%+v", got)
		}
	}
	for _, more := range []string{small, "Content-Length: 40000\r\n\r\n" + strings.Repeat(" ", 40_000)} {
		got := raw(t, addr, request("a", more))
		if f := got.refused(t, wire.CodeOverloaded); f["reason"] != "key_connections" {
			t.Errorf("one more connection: %+v", got)
		}
	}
	if got := raw(t, addr, request("b", small)); got.status != 201 {
		t.Errorf("another key: %+v", got)
	}
	if err := held[0].Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.Open() <= 4 })
	waitFor(t, func() bool { return raw(t, addr, request("a", small)).status == 201 })
}
