package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

// bigBody is larger than any request except a restore may be.
func bigBody() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 1<<20) } // 16 MiB

// received is the backup that a fake node was told to restore.
type received struct {
	sum  [sha256.Size]byte
	size int
	err  error
}

// receiver makes the node read whole backups.
func receiver(node *nodetest.Node) <-chan received {
	got := make(chan received, 1)
	node.OnRestore = func(_ context.Context, r io.Reader) (uint64, error) {
		b, err := io.ReadAll(r)
		got <- received{sha256.Sum256(b), len(b), err}
		return 41, err
	}
	return got
}

// post sends a body, in chunks if chunked.
func post(t *testing.T, url string, body io.Reader, headers ...string) (status int, text string, header http.Header) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	c := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 30 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("POST %s: %v", url, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: make(map[string]string), body: string(got)}
	for name := range resp.Header {
		a.header[name] = resp.Header.Get(name)
	}
	if strings.HasSuffix(url, restorePath) {
		described(t, http.MethodPost, restorePath, "", a)
	}
	return a.status, a.body, resp.Header
}

// A backup of any size is accepted, however it is sent.
func TestServer_Restore(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	got := receiver(node)
	url := "http://" + listen(t, s) + "/api/restore"
	big := bigBody()
	for _, test := range []struct {
		name    string
		body    func() io.Reader
		headers []string
		want    []byte
	}{
		{"with a length", func() io.Reader { return bytes.NewReader(big) }, nil, big},
		{"in chunks", func() io.Reader { return io.MultiReader(bytes.NewReader(big)) }, nil, big},
		{"when it is asked for", func() io.Reader { return bytes.NewReader(big) }, []string{"Expect", "100-continue"}, big},
		{"in chunks when it is asked for", func() io.Reader { return io.MultiReader(bytes.NewReader(big)) }, []string{"Expect", "100-continue"}, big},
		{"small", func() io.Reader { return strings.NewReader("x") }, nil, []byte("x")},
		{"none", func() io.Reader { return http.NoBody }, nil, nil},
		{"with a header that is ours", func() io.Reader { return strings.NewReader("abc") }, []string{headerUpload, "1"}, []byte("abc")},
	} {
		status, answer, header := post(t, url, test.body(), test.headers...)
		if status != http.StatusOK || answer != `{"success":true,"index":41}` || header.Get("X-Claimq-Index") != "41" || header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %s %v", test.name, status, answer, header)
			continue
		}
		if r := <-got; r.err != nil || r.size != len(test.want) || r.sum != sha256.Sum256(test.want) {
			t.Errorf("%s: the node got %d bytes of %d, error %v", test.name, r.size, len(test.want), r.err)
		}
	}
	told := toldBackups(node)
	slices.Sort(told)
	if diff := cmp.Diff([]string{"restore_begun from 127.0.0.1", "restored at index N, from 127.0.0.1"}, slices.Compact(told)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	// Every other path keeps its bound.
	if status, answer, _ := post(t, strings.TrimSuffix(url, "/api/restore")+"/api/tasks", bytes.NewReader(big)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a submit of 16 MiB: %d %s", status, answer)
	}
	if status, answer, _ := post(t, url+"s", bytes.NewReader(big)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("another path, 16 MiB: %d %s", status, answer)
	}
}

// A request that is refused because of its header is refused at once, and the sender gets the answer.
func TestServer_RestoreRefused(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	url := "http://" + listen(t, s) + "/api/restore"
	big := bigBody()
	check := func(name string, status int, names string, headers ...string) {
		t.Helper()
		got, answer, _ := post(t, url, bytes.NewReader(big), headers...)
		if got != status || !strings.Contains(answer, names) {
			t.Errorf("%s: %d %s; want %d that names %q", name, got, answer, status, names)
		}
	}
	check("no leader", http.StatusServiceUnavailable, "no_leader")
	check("another host's name", http.StatusForbidden, "Host", "Host", "evil.example")
	for _, test := range []struct {
		err    error
		status int
		names  string
	}{
		{fmt.Errorf("%w: it holds 3 tasks", nodes.ErrNotEmpty), 409, `"code":"cluster_not_empty"`},
		{fmt.Errorf("read backup: %w: its checksum differs", fsm.ErrCorrupt), 400, "its checksum differs"},
		{fmt.Errorf("%w: level 9", fsm.ErrUnknownCommand), 400, "newer version"},
		{fsm.ErrCountersUsedUp, 400, "no ids are left"},
		{&nodes.MembershipRefused{Reason: "n2 does not answer", Advice: "Bring it back"}, 409, "membership_refused"},
		{&nodes.Overload{Bound: nodes.BoundDisk, Text: "the disk is full"}, 503, `"reason":"disk"`},
		{nodes.ErrOutcomeUnknown, 504, "claimq stats"},
		{errors.New("a bug"), 500, "Internal server error"},
	} {
		node.OnRestore = func(context.Context, io.Reader) (uint64, error) { return 0, test.err }
		check(test.err.Error(), test.status, test.names)
	}
	told := toldBackups(node)
	if last := told[len(told)-2:]; last[0] != "restore_begun from 127.0.0.1" || last[1] != "restore_broken_off from 127.0.0.1, internal" {
		t.Errorf("told %q", last)
	}
	node.Follower, node.LeaderAddr = true, "http://10.0.0.2:7400"
	status, answer, header := post(t, url, bytes.NewReader(big))
	if status != http.StatusTemporaryRedirect || header.Get("Location") != "http://10.0.0.2:7400/api/restore" ||
		!strings.Contains(answer, "the leader at http://10.0.0.2:7400") || !strings.Contains(answer, `"success":false`) {
		t.Errorf("at a follower: %d %s %v", status, answer, header)
	}
}

// A truncated body is an error for the node, and nothing hangs.
func TestServer_RestoreCutOff(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	got := receiver(node)
	addr := listen(t, s)
	for _, request := range []string{
		"POST /api/restore HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc",
		"POST /api/restore HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"POST http://localhost/api/restore HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc",
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		a := receive(t, bufio.NewReader(conn))
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, "did not arrive whole") {
			t.Errorf("%q: %d %s", request, a.status, a.body)
		}
		if r := <-got; r.err == nil || r.size != 3 {
			t.Errorf("%q: the node got %d bytes, error %v", request, r.size, r.err)
		}
		_ = conn.Close()
	}
}

// A draining server does not wait for a silent sender.
func TestServer_RestoreDrain(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	got := receiver(node)
	addr := listen(t, s)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/restore HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.Open() == 1 })
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	select {
	case r := <-got:
		if r.err == nil {
			t.Error("the node got a whole backup")
		}
	default: // it did not even begin
	}
}

// The saved file is a backup of the state, and the trail records it.
func TestServer_SaveBackup(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	url := "http://" + listen(t, s) + "/api/snapshots/latest"
	if _, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Payload: bytes.Repeat([]byte("x"), 3<<20)}}}); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"", "?consistency=stale"} {
		resp, err := http.Get(url + query)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		saved, err := fsm.ReadBackup(bytes.NewReader(b), int64(len(b)))
		if err != nil || saved.Stats().Counts[fsm.StatusPending] != 1 || fmt.Sprint(saved.Info.Index) != resp.Header.Get("X-Claimq-Index") {
			t.Fatalf("%s: %d bytes, %v %v", resp.Status, len(b), err, resp.Header)
		}
	}
	waitFor(t, func() bool { return len(s.backups.saving) == 0 })
	told := toldBackups(node)
	want := []string{"backup_begun at index N, to 127.0.0.1", "backup_saved at index N, N bytes, to 127.0.0.1"}
	if diff := cmp.Diff(append(want, want...), told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	resp, err := http.Head(url)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("HEAD: %v %v", resp, err)
	}
	waitFor(t, func() bool { return len(s.backups.saving) == 0 })
	if now := toldBackups(node); len(now) != len(told) {
		t.Errorf("HEAD is told: %q", now)
	}
	if resp, err := http.Get(url + "?x=1"); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown parameter: %v %v", resp.Status, err)
	}
}

// toldBackups returns what the trail says about backups, with N for numbers.
func toldBackups(n *nodetest.Node) (told []string) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	numbers := regexp.MustCompile(`\b(index|after|,) \d+\b`)
	for _, cmd := range n.Proposed {
		tell, ok := cmd.(command.Tell)
		if !ok || !strings.Contains(tell.Kind.String(), "backup") && !strings.Contains(tell.Kind.String(), "restore") {
			continue
		}
		told = append(told, numbers.ReplaceAllString(tell.Kind.String()+" "+tell.What, "$1 N"))
	}
	return told
}

// Clients that do not read hold both places, so that a third gets none; when one goes, its place is free.
func TestServer_SaveBackupBounds(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	for i := range 16 { // more than the sockets can buffer
		if _, err := node.Apply(command.Submit{Tasks: []fsm.NewTask{{Type: "mail", Payload: bytes.Repeat([]byte{byte(i)}, 1<<20)}}}); err != nil {
			t.Fatal(err)
		}
	}
	var slow []net.Conn
	for range savesMax {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /api/snapshots/latest HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	waitFor(t, func() bool { return len(s.backups.saving) == savesMax })
	if a := raw(t, addr, "GET /api/snapshots/latest HTTP/1.1\r\nHost: localhost\r\n\r\n"); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "backups already") {
		t.Errorf("a third: %d %s", a.status, a.body)
	}
	for _, conn := range slow {
		_ = conn.Close()
	}
	waitFor(t, func() bool { return len(s.backups.saving) == 0 })
	told := toldBackups(node)
	slices.Sort(told)
	want := []string{"backup_begun at index N, to 127.0.0.1", "backup_broken_off at index N, after N bytes, to 127.0.0.1"}
	if diff := cmp.Diff(want, slices.Compact(told)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestServer_TakeSnapshot(t *testing.T) {
	t.Parallel()
	s, node := setup(t)
	addr := listen(t, s)
	for _, body := range []string{"", "{}"} {
		a := raw(t, addr, fmt.Sprintf("POST /api/snapshots HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		if a.status != http.StatusOK || a.body != `{"success":true,"index":7}` {
			t.Errorf("%q: %d %s", body, a.status, a.body)
		}
	}
	if last := node.Proposed[len(node.Proposed)-1].(command.Tell); last.Kind != event.SnapshotTaken || last.What != "at index 7" {
		t.Errorf("told %+v", last)
	}
}

// The cost that restores add to every request.
func BenchmarkHideUpload(b *testing.B) {
	var h fasthttp.RequestHeader
	if err := h.Read(bufio.NewReader(strings.NewReader("POST /api/tasks/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\n\r\n"))); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		hideUpload(&h)
	}
}
