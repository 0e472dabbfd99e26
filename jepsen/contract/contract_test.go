package contract

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claimq/claimq/api/openapitest"
	"github.com/claimq/claimq/internal/procs"
)

var update = flag.Bool("update", false, "write docs/contract.md")

const (
	// stepTimeout bounds one request on a slow machine.
	stepTimeout = 90 * time.Second
	// againInterval is the interval at which a request is repeated whose answer may come
	// later.
	againInterval = 20 * time.Millisecond
)

// Each promise of the contract, shown on three real nodes.
func TestContract(t *testing.T) {
	rows := readRows(t)
	issuer := newIssuer(t)
	open, keyed := newCluster(t), newCluster(t, "--keys-file", writeKeys(t), "--config", issuer.config)
	issuer.awaited(t, keyed)
	keyed.tokens = issuer.tokens
	of := func(r row) *cluster {
		if r.file == keysFile || r.file == tokensFile {
			return keyed
		}
		return open
	}
	for _, r := range rows {
		switch {
		case r.goesDown(): // on separate nodes, because it may take a minute
			t.Run(r.test(), func(t *testing.T) {
				t.Parallel()
				c := newCluster(t)
				c.run(t, r)
				c.nothingLeft(t)
			})
		case r.alone:
			t.Run(r.test(), func(t *testing.T) {
				of(r).run(t, r)
				of(r).nothingLeft(t)
			})
		}
	}
	for _, r := range rows {
		if !r.alone {
			t.Run(r.test(), func(t *testing.T) {
				t.Parallel()
				of(r).run(t, r)
			})
		}
	}
}

// keysFile and tokensFile contain the rows for nodes with keys, which also accept the
// tokens of an issuer.
const (
	keysFile   = "keys"
	tokensFile = "tokens"
)

// writeKeys writes the keys of the nodes that have some: key-ROLE for each role, without a
// rate; key-mail and key-post, workers of these types, each for one row that submits and
// claims, because rows run at the same time; key-slow, a reader that may ask each node once
// a minute, and key-hasty, a worker that may ask twice; key-over, an operator's that has
// expired, and key-later, a reader's that will expire; key-near, a producer's for this
// machine only, and key-far, an operator's for other machines; key-both, a producer's and
// worker's.
func writeKeys(t *testing.T) (file string) {
	t.Helper()
	b := []byte("keys:\n")
	add := func(name, role, more string) {
		b = fmt.Appendf(b, "  - {name: %s, role: %s, key_sha256: %x, %s}\n", name, role, sha256.Sum256([]byte("key-"+name)), more)
	}
	for _, role := range []string{"reader", "producer", "worker", "operator"} {
		add(role, role, "rate_limit_per_minute: 0")
	}
	add("mail", "worker", "rate_limit_per_minute: 0, task_types: [mail]")
	add("post", "worker", "rate_limit_per_minute: 0, task_types: [post]")
	add("slow", "reader", "rate_limit_per_minute: 1")
	add("hasty", "worker", "rate_limit_per_minute: 2")
	add("over", "operator", "rate_limit_per_minute: 0, expires_at: 2026-01-31T12:00:00+01:00")
	add("near", "producer", "rate_limit_per_minute: 0, addresses: [127.0.0.0/8, '::1']")
	add("far", "operator", "rate_limit_per_minute: 0, addresses: [192.0.2.0/24, 2001:db8::/32]")
	b = fmt.Appendf(b, "  - {name: both, roles: [producer, worker], key_sha256: %x, rate_limit_per_minute: 0}\n", sha256.Sum256([]byte("key-both")))
	add("later", "reader", "rate_limit_per_minute: 0, expires_at: 2999-01-31T12:00:00Z")
	file = filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// docs/contract.md names the test of each row.
func TestContract_document(t *testing.T) {
	t.Parallel()
	const file = "../../docs/contract.md"
	want := document(readRows(t))
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("docs/contract.md is not what `go -C jepsen test ./contract -run document -update` writes (-is +should be):\n%s", diff)
	}
}

func document(rows []row) string {
	var b strings.Builder
	b.WriteString("# The contract's rows and their tests\n\n" +
		"Each promise, and the test that shows it on three real nodes: `go -C jepsen test ./contract -run 'TestContract/ROW'`. Each part\n" +
		"links its steps; [rows](../jepsen/contract/rows/README.md) says how to read them. This list is generated: `go -C jepsen test ./contract -run document -update`.\n\n" +
		"A row begins with what it is about: 3, [the task's fields](api.md#task); 4, [the calls](api.md); 8, repeats and other fine print\n" +
		"of [the protocol](protocol.md) and of [the guarantees](guarantees.md).\n")
	file := ""
	for _, r := range rows {
		if r.file != file {
			file = r.file
			fmt.Fprintf(&b, "\n## %s\n\n[Its steps](../jepsen/contract/rows/%s.txt)\n\n| row | what is promised |\n| --- | --- |\n", strings.ReplaceAll(file, "_", " "), file)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.test(), strings.ReplaceAll(r.says, "|", `\|`))
	}
	return b.String()
}

// cluster is the three nodes for the rows.
type cluster struct {
	*procs.Cluster
	turn        atomic.Uint64
	tokens      vars                 // for the rows of tokensFile
	description *openapitest.Checker // served by the nodes
}

func newCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	binary := os.Getenv("CLAIMQ_BINARY") // with a planted bug, or another version
	if binary == "" {
		var err error
		if binary, err = procs.Build(ctx, t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	p, err := procs.Start(ctx, procs.Config{Binary: binary, Dir: t.TempDir(), Nodes: 3, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if t.Failed() {
			for _, n := range p.Nodes {
				t.Logf("%s printed at last:\n%s", n.ID, n.LogTail(10))
			}
		}
	})
	return &cluster{Cluster: p, description: describedBy(t, p.Nodes[0])}
}

// describedBy returns the description of the API that a node serves.
func describedBy(t *testing.T, n *procs.Node) *openapitest.Checker {
	t.Helper()
	resp, err := http.Get(n.URL() + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	checker, err := openapitest.New(text)
	if err != nil {
		t.Fatal(err)
	}
	return checker
}

// url returns the URL of the step's request.
func (c *cluster) url(t *testing.T, s step) string {
	t.Helper()
	if s.node == "" {
		return c.Nodes[c.turn.Add(1)%uint64(len(c.Nodes))].URL()
	}
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.node == "leader" {
		return leader.URL()
	}
	for _, n := range c.Nodes {
		if n != leader {
			return n.URL()
		}
	}
	return ""
}

// answer is the response to a request.
type answer struct {
	status int
	body   string
	took   time.Duration
	err    error
	// undescribed says what is missing in the description of the API.
	undescribed error
}

// run performs the row's steps.
func (c *cluster) run(t *testing.T, r row) {
	t.Helper()
	unique := fmt.Sprintf("%s-%d", t.Name()[strings.LastIndexByte(t.Name(), '/')+1:], c.turn.Add(1))
	unique = strings.Map(func(c rune) rune {
		if c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '-'
	}, unique)
	v := vars{}
	if r.file == tokensFile {
		maps.Copy(v, c.tokens)
	}
	for _, name := range []string{"T", "T2", "K", "W"} {
		v[name] = strconv.Quote(name + "-" + unique)
	}
	background := map[string]<-chan answer{}
	var last *step
	for i := range r.steps {
		s := &r.steps[i]
		if s.down > 0 {
			c.down(t, s.down)
			continue
		}
		if s.method != "" && s.name != "" {
			sent := make(chan answer, 1)
			url, filled := c.url(t, *s), v.filled(*s)
			go func() { sent <- c.send(t.Context(), url, filled) }()
			background[s.name] = sent
			continue
		}
		if s.method != "" {
			if last != nil {
				t.Fatalf("rows/%s.txt:%d: the request before has no answer", r.file, s.line)
			}
			last = s
			continue
		}
		if problem := c.answered(t, v, last, s, background); problem != "" {
			t.Fatalf("rows/%s.txt:%d: %s", r.file, s.line, problem)
		}
		last = nil
	}
	if last != nil {
		t.Fatalf("rows/%s.txt:%d: the request has no answer", r.file, last.line)
	}
}

// down ends all nodes at once, like a power failure, and starts them again after d.
func (c *cluster) down(t *testing.T, d time.Duration) {
	t.Helper()
	for _, n := range c.Nodes {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(d)
	ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
	defer cancel()
	if err := c.StartAll(ctx); err != nil {
		t.Fatal(err)
	}
}

// answered waits for the answer that the step describes and returns what is wrong with it,
// "" if nothing is.
func (c *cluster) answered(t *testing.T, v vars, asked, s *step, background map[string]<-chan answer) string {
	t.Helper()
	if s.name != "" {
		sent := background[s.name]
		if sent == nil {
			return "no request has the name " + s.name
		}
		return v.fits(<-sent, s)
	}
	if asked == nil {
		return "an answer without a request"
	}
	for end := time.Now().Add(s.within); ; {
		a := c.send(t.Context(), c.url(t, *asked), v.filled(*asked))
		if a.undescribed != nil {
			return a.undescribed.Error() // even if a later answer fits
		}
		problem := v.fits(a, s)
		if problem == "" || !time.Now().Before(end) {
			return problem
		}
		<-time.After(againInterval)
	}
}

// fits returns what is wrong with the answer, "" if nothing is.
func (v vars) fits(a answer, s *step) string {
	for _, err := range []error{a.err, a.undescribed} {
		if err != nil {
			return err.Error()
		}
	}
	if a.status != s.status {
		return fmt.Sprintf("status %d, not %d: %s", a.status, s.status, a.body)
	}
	if s.before > 0 && a.took > s.before {
		return fmt.Sprintf("it took %v, not less than %v", a.took, s.before)
	}
	if problem := v.match(s.body, a.body); problem != "" {
		return problem + "\nthe answer: " + a.body
	}
	return ""
}

// filled returns the request with the row's values filled in.
func (v vars) filled(s step) step {
	s.target, s.body, s.headers = v.fill(s.target), v.fill(s.body), slices.Clone(s.headers)
	for i, h := range s.headers {
		s.headers[i][1] = v.fill(h[1])
	}
	return s
}

// send sends a request to the node at url.
func (c *cluster) send(ctx context.Context, url string, s step) answer {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, s.method, url+s.target, strings.NewReader(s.body))
	if err != nil {
		return answer{err: err}
	}
	for _, h := range s.headers {
		req.Header.Set(h[0], h[1])
	}
	begun := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, body: string(text), took: time.Since(begun), err: err}
	a.undescribed = c.description.Check(openapitest.Exchange{Method: s.method, Target: s.target, Sent: []byte(s.body), Status: a.status, Header: resp.Header, Body: text})
	return a
}

// nothingLeft fails if a row that ran alone left tasks to claim.
func (c *cluster) nothingLeft(t *testing.T) {
	t.Helper()
	a := c.send(t.Context(), c.Nodes[0].URL(), step{method: "GET", target: "/api/stats", headers: [][2]string{{"X-API-Key", "key-reader"}}})
	v := vars{}
	if problem := v.fits(a, &step{status: 200, body: `{"counts": {"pending": 0}}`}); problem != "" {
		t.Errorf("the row left something to claim: %s", problem)
	}
}
