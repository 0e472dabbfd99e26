package trail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
)

// openFor opens an audit file until the test ends.
func openFor(t testing.TB, path string, node *nodetest.Node) *Audit {
	t.Helper()
	a, err := OpenAudit(AuditConfig{Path: path, Node: node})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(a.Close)
	return a
}

// audited waits until the file ends with the node's newest event, and returns its lines.
func audited(t testing.TB, path string, node *nodetest.Node) []string {
	t.Helper()
	node.Mu.Lock()
	newest := node.Machine.NewestEvent()
	node.Mu.Unlock()
	want := fmt.Sprintf(`{"index":%d,"sub":%d,`, newest.Index, newest.Sub)
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(time.Millisecond) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, whole := strings.CutSuffix(string(b), "\n")
		lines := strings.Split(text, "\n")
		if whole && strings.HasPrefix(lines[len(lines)-1], want) {
			return lines
		}
		if time.Now().After(deadline) {
			t.Fatalf("the file does not end with %s:\n%s", want, b)
		}
	}
}

// brief formats the place and name of each line's event.
func brief(t testing.TB, lines []string) string {
	t.Helper()
	var events []wire.Event
	for _, line := range lines {
		var e wire.Event
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, e)
	}
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d.%d %s", e.Index, e.Sub, e.Event))
	}
	return strings.Join(out, ", ")
}

// TestAudit checks that the file has every event once, whatever happens to it and to the process.
func TestAudit(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	a := openFor(t, path, node)
	nodetest.SubmitTo(t, node, 3)
	nodetest.SubmitTo(t, node, 1)
	lines := audited(t, path, node)
	const want = "1.0 level_raised, 1.1 submitted, 1.2 submitted, 1.3 submitted, 2.0 submitted"
	if got := brief(t, lines); got != want {
		t.Fatalf("the file has %s, want %s", got, want)
	}
	if _, err := OpenAudit(AuditConfig{Path: path, Node: node}); err == nil {
		t.Error("another may write the file too")
	}

	// A restart after a crash within a line.
	a.Close()
	a.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{len(whole) - 1, len(whole) - 40, len(lines[0]) + 5, len(lines[0]) + 1, len(lines[0]), 3, 0} {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		a := openFor(t, path, node)
		if got := brief(t, audited(t, path, node)); got != want {
			t.Errorf("cut to %d bytes, the file then has %s", cut, got)
		}
		a.Close()
	}

	// After a loss of power there may be zeros within and at the end.
	for _, damaged := range [][]byte{
		append(bytes.Clone(whole), make([]byte, 4096)...),
		append(append(bytes.Clone(whole[:len(lines[0])+20]), make([]byte, 100)...), whole[len(lines[0])+120:]...),
	} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		a := openFor(t, path, node)
		if got := brief(t, audited(t, path, node)); got != want {
			t.Errorf("after a loss of power the file has %s", got)
		}
		a.Close()
	}
}

// TestAudit_Many checks the order over many pages and files.
func TestAudit_Many(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit")
	a := openFor(t, path, node)
	var want []string
	index := 0
	for i := range 40 {
		nodetest.SubmitTo(t, node, 100)
		index++
		if index == 1 {
			want = append(want, "1.0 level_raised")
		}
		for sub := range 100 {
			if index == 1 {
				sub++
			}
			want = append(want, fmt.Sprintf("%d.%d submitted", index, sub))
		}
		if i == 33 {
			audited(t, path, node) // so that at least one file has something to continue
		}
		if i%10 == 3 {
			if err := os.Rename(path, filepath.Join(dir, fmt.Sprintf("old%02d", i))); err != nil {
				t.Fatal(err)
			}
			a.Reopen()
		}
		if i%10 == 7 {
			a.Close()
			a = openFor(t, path, node)
		}
	}
	lines := audited(t, path, node)
	olds, err := filepath.Glob(filepath.Join(dir, "old*"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, old := range olds {
		b, err := os.ReadFile(old)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) { // empty if it was moved at once
			got = append(got, line)
		}
	}
	var events []string
	continued := 0
	for e := range strings.SplitSeq(brief(t, append(got, lines...)), ", ") {
		if strings.HasSuffix(e, " continued") {
			continued++
			continue
		}
		events = append(events, e)
	}
	if g, w := strings.Join(events, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("%d events, want %d", len(events), len(want))
	}
	if len(olds) != 4 || continued == 0 || continued > 4 {
		t.Errorf("%d old files, %d lines say that a file continues one", len(olds), continued)
	}
}

// TestAudit_Gone checks that a line records if the trail has dropped events that the file does not have.
func TestAudit_Gone(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit")
	nodetest.SubmitTo(t, node, 1)
	a := openFor(t, path, node)
	audited(t, path, node)
	a.Close()
	nodetest.LoseTrail(t, node)
	openFor(t, path, node)
	lines := audited(t, path, node)
	if got := brief(t, lines); got != "1.0 level_raised, 1.1 submitted, 3.4294967295 events_gone, 4.0 trail_changed" {
		t.Errorf("the file has %s", got)
	}
	if !strings.Contains(lines[2], "events after 1.1 and up to this place are kept no more") {
		t.Errorf("the line says %s", lines[2])
	}

	fresh := filepath.Join(t.TempDir(), "audit")
	openFor(t, fresh, node)
	if got := brief(t, audited(t, fresh, node)); got != "3.4294967295 events_gone, 4.0 trail_changed" {
		t.Errorf("a new file has %s", got)
	}
}

// A file that ends with a place that the trail has not reached, for example from a lost cluster, would miss events.
// The node's log says so until the trail has got there.
func TestAudit_Ahead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit")
	lost := nodetest.New()
	for range 3 {
		nodetest.SubmitTo(t, lost, 1)
	}
	a := openFor(t, path, lost)
	audited(t, path, lost)
	a.Close()
	synctest.Test(t, func(t *testing.T) {
		node := nodetest.New()
		nodetest.SubmitTo(t, node, 1)
		var log bytes.Buffer
		a, err := OpenAudit(AuditConfig{Path: path, Node: node, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: &sync.Mutex{}})})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(syncInterval + retryMin) // the writer's intervals, in the test's time
		for range 3 {
			nodetest.SubmitTo(t, node, 1)
		}
		audited(t, path, node)
		a.Close()
		if want := "it ends with the place 3.0, which the trail has not come to (1)"; !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &log)
		}
	})
}

// TestAudit_Refuses checks that files that are not audit files are left alone.
func TestAudit_Refuses(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"prose": "dear diary\n", "unended": "dear diary", "blank": "\n", "json": "{\"a\":1}\n", "almost": "{\"index\":1}\n{\"index\":2}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if a, err := OpenAudit(AuditConfig{Path: path, Node: node}); err == nil {
			a.Close()
			t.Errorf("%s is taken for an audit file", name)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != content {
			t.Errorf("%s is changed to %q, %v", name, b, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "audit"), "/dev/null"} {
		if a, err := OpenAudit(AuditConfig{Path: path, Node: node}); err == nil {
			a.Close()
			t.Errorf("%s is taken for an audit file", path)
		}
	}
}

// TestAudit_DiskFails checks that errors of the disk lose no event.
func TestAudit_DiskFails(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit")
	a := openFor(t, path, node)
	nodetest.SubmitTo(t, node, 1)
	audited(t, path, node)
	a.mu.Lock()
	if _, err := a.file.file.WriteString(`{"index":2,"su`); err != nil { // as a full disk leaves it
		t.Error(err)
	}
	if err := a.file.file.Close(); err != nil { // writes fail from here on
		t.Error(err)
	}
	a.mu.Unlock()
	nodetest.SubmitTo(t, node, 2)
	if got := brief(t, audited(t, path, node)); got != "1.0 level_raised, 1.1 submitted, 2.0 submitted, 2.1 submitted" {
		t.Errorf("the file has %s", got)
	}
}

// TestAudit_DiskFailsWithABacklog checks that writing to a failing file is retried with pauses, however much there is
// to write.
func TestAudit_DiskFailsWithABacklog(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit")
	for range 4 {
		nodetest.SubmitTo(t, node, PageMax)
	}
	var tries atomic.Int32
	var a *Audit
	opened := make(chan struct{})
	node.OnRead = func(context.Context, uint64) error { // reads of the trail, before the file is written
		<-opened
		tries.Add(1)
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.file.file.Close() // writes to it fail
	}
	a = openFor(t, path, node)
	close(opened)
	for deadline := time.Now().Add(30 * time.Second); tries.Load() < 2; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not tried again")
		}
	}
	<-time.After(retryMin)
	if n := tries.Load(); n > 8 {
		t.Errorf("%d tries, one is made every %s at most", n, retryMin)
	}
}

// TestAudit_Syncs checks that a file that is written all the time is still synced.
func TestAudit_Syncs(t *testing.T) {
	t.Parallel()
	node := nodetest.New()
	path := filepath.Join(t.TempDir(), "audit")
	a := openFor(t, path, node)
	nodetest.SubmitTo(t, node, 1)
	audited(t, path, node)
	a.mu.Lock()
	a.synced = time.Now().Add(-syncInterval)
	a.mu.Unlock()
	nodetest.SubmitTo(t, node, 1)
	audited(t, path, node)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsynced > 0 {
		t.Errorf("%d bytes are not synced after %s", a.unsynced, syncInterval)
	}
}

// A disk that hangs is logged, and does not block Close.
func TestAudit_diskHangs(t *testing.T) {
	t.Parallel()
	said := make(lines, 16)
	a, err := OpenAudit(AuditConfig{Path: filepath.Join(t.TempDir(), "audit.jsonl"), Node: nodetest.New(), Logger: hclog.New(&hclog.LoggerOptions{Output: said})})
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock() // as during a write
	a.busySince.Store(time.Now().Add(-time.Minute).UnixNano())
	if line := <-said; !strings.Contains(line, "does not answer: events wait") {
		t.Errorf("it says %q", line)
	}
	a.closeWait = time.Millisecond
	a.Close()
	if line := <-said; !strings.Contains(line, "the file is left as it is") {
		t.Errorf("it says %q", line)
	}
	a.busySince.Store(0)
	a.mu.Unlock()
	a.closeWait = closeMax
	a.Close()
	if a.file != nil {
		t.Error("the file is not closed once the disk answers")
	}
}

// lines receives log lines.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
