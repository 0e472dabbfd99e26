package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/claimq/claimq/cluster"
	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/config"
	"github.com/claimq/claimq/internal/testwait"
	"github.com/claimq/claimq/internal/zones/zonestest"
)

// stopAt is a log that ends the server when it gets a certain text.
type stopAt struct {
	text string
	stop context.CancelFunc
	mu   sync.Mutex
	said bytes.Buffer // guarded by mu
}

func (s *stopAt) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(p)
	if strings.Contains(s.said.String(), s.text) {
		s.stop()
	}
	return len(p), nil
}

func (s *stopAt) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

// settings returns the configuration of a node n1 with a new folder, at the first two ports.
func settings(t *testing.T, ports []int, more ...string) (loaded config.Loaded, load func() (config.Loaded, error)) {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "join.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddServerFlags(flags)
	environ := append(more, "CLAIMQ_NODE_ID=n1", "CLAIMQ_DATA_DIR="+filepath.Join(dir, "data"), "CLAIMQ_JOIN_KEY_FILE="+key,
		fmt.Sprintf("CLAIMQ_HTTP_ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("CLAIMQ_PEER_ADDR=127.0.0.1:%d", ports[1]))
	load = func() (config.Loaded, error) { return config.LoadServer("", environ, flags) }
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded, load
}

// Stopping a node that waits for the others is not a failure.
func TestRunServer_stoppedWhileItWaits(t *testing.T) {
	t.Parallel()
	ports := claimqtest.TakePorts(t, 3)
	loaded, load := settings(t, ports,
		fmt.Sprintf("CLAIMQ_INITIAL_CLUSTER=n1=127.0.0.1:%d,n2=127.0.0.1:%d", ports[1], ports[2]))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &stopAt{text: "waiting for the other nodes", stop: stop}
	if err := run(ctx, &term.App{Stderr: log}, loaded, load, defaultWaits()); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if got := log.String(); !strings.Contains(got, "stopped before the node had started") {
		t.Errorf("it logged\n%s", got)
	}
}

// ranServer is a node that run runs in this process.
type ranServer struct {
	addr  string // the API's address
	log   *stopAt
	stop  context.CancelFunc
	ended chan struct{} // closed when run has returned
	err   error         // what it returned
}

// startServer runs a node that forms a cluster alone, with more variables, and waits until it serves. It has ended when
// the test ends.
func startServer(t *testing.T, w waits, more ...string) *ranServer {
	t.Helper()
	ports := claimqtest.TakePorts(t, 2)
	loaded, load := settings(t, ports, append(more, "CLAIMQ_BOOTSTRAP=true", "CLAIMQ_DRAIN_TIME=0s")...)
	ctx, stop := context.WithCancel(context.Background())
	serving := make(chan struct{})
	s := &ranServer{
		addr: fmt.Sprintf("127.0.0.1:%d", ports[0]), stop: stop, ended: make(chan struct{}),
		log: &stopAt{text: "serving:", stop: sync.OnceFunc(func() { close(serving) })},
	}
	go func() {
		defer close(s.ended)
		s.err = run(ctx, &term.App{Stderr: s.log}, loaded, load, w)
	}()
	t.Cleanup(func() {
		stop()
		<-s.ended
	})
	select {
	case <-serving:
	case <-s.ended:
		t.Fatalf("it ended with %v", s.err)
	}
	return s
}

// ask returns the API's answer.
func (s *ranServer) ask(method, path, body string) (answer string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: claimqtest.Patience}
	req, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = errors.New(resp.Status)
	}
	return string(b), err
}

// A changed time zone file is read again without a signal. The cluster's overview shows the new version, and a
// schedule's next run moves.
func TestRunServer_zonesAgain(t *testing.T) {
	t.Parallel()
	zones := filepath.Join(t.TempDir(), "zones.zip")
	zonestest.Write(t, zones, "2027a", zonestest.Always(0))
	w := defaultWaits()
	w.look = 10 * time.Millisecond
	s := startServer(t, w, "CLAIMQ_ZONE_DATA_FILE="+zones)
	until := func(what, method, path, body, says string) {
		t.Helper()
		testwait.Until(t, what, func() bool {
			answer, err := s.ask(method, path, body)
			return err == nil && strings.Contains(answer, says)
		})
	}
	until("the version of the start", http.MethodGet, "/api/cluster", "", `"version":"2027a"`)
	schedule := `{"cron":"0 3 * * *","timezone":"` + zonestest.Zone + `","task":{"task_type":"night","params":1}}`
	until("the next run by the clocks of the start", http.MethodPut, "/api/schedules/night", schedule, "T03:00:00")
	zonestest.Write(t, zones, "2027b", zonestest.Always(2*time.Hour))
	until("the version that the file has now", http.MethodGet, "/api/cluster", "", `"version":"2027b"`)
	until("the next run by the new clocks", http.MethodGet, "/api/schedules/night", "", "T01:00:00")
}

// A client in the middle of its request delays a stop, but causes no failure.
func TestRunServer_stopsAmidARequest(t *testing.T) {
	t.Parallel()
	w := defaultWaits()
	w.stop = 100 * time.Millisecond
	s := startServer(t, w)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	// The server has begun with the request when it asks for the body.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	s.stop()
	select {
	case <-s.ended:
		if got := s.log.String(); s.err != nil || !strings.Contains(got, "requests that were under way are not answered") {
			t.Errorf("it ended with %v, and it logged\n%s", s.err, got)
		}
	case <-time.After(testwait.Patience):
		t.Error("it has not stopped")
		_ = conn.Close()
	}
}

// A stop ends in time with a status and a log line that says why, even if a file of the node hangs.
func TestRunServer_stopsThoughAFileHangs(t *testing.T) {
	t.Parallel()
	zones := filepath.Join(t.TempDir(), "zones.zip")
	zonestest.Write(t, zones, "2027a", zonestest.Always(0))
	exited := make(chan int, 1)
	w := defaultWaits()
	w.most, w.exit = 100*time.Millisecond, func(code int) { exited <- code }
	s := startServer(t, w, "CLAIMQ_ZONE_DATA_FILE="+zones)
	if err := errors.Join(os.Remove(zones), syscall.Mkfifo(zones, 0o600), syscall.Kill(os.Getpid(), syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	var hangs *os.File // reads of it end only when it is closed
	testwait.Until(t, "the node to read the file", func() (reads bool) {
		var err error
		hangs, err = os.OpenFile(zones, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	defer hangs.Close()
	s.stop()
	select {
	case code := <-exited:
		if got := s.log.String(); code != cluster.ExitFatal || !strings.Contains(got, "ending with the stop unfinished") {
			t.Errorf("exit code %d, and it logged\n%s", code, got)
		}
	case <-time.After(testwait.Patience):
		t.Error("the stop has no bound")
	}
}
