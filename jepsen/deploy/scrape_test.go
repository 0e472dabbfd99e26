package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/certs/certstest"
	"github.com/claimq/claimq/internal/oidc/oidctest"
	"github.com/claimq/claimq/internal/procs"
)

// patience bounds every wait for the nodes.
const patience = 3 * time.Minute

// samplesMax bounds the samples that a node of a small cluster tells at a scrape.
const samplesMax = 600

// metric is one metric of the nodes.
type metric struct {
	kind   string          // as in its TYPE line
	labels map[string]bool // except le and quantile
	values map[string]bool // of its labels, as label=value
}

// scrape holds the metrics of the nodes, by name.
type scrape map[string]*metric

// Everything that uses the metrics is checked against nodes under a little load.
func TestScrape(t *testing.T) {
	t.Parallel()
	all := scrapeNodes(t)
	t.Run("documented", func(t *testing.T) { checkDocumented(t, all) })
	t.Run("dashboard", func(t *testing.T) {
		for _, p := range readDashboard(t).leaves() {
			for _, target := range p.Targets {
				all.check(t, fmt.Sprintf("panel %q", p.Title), target.Expr)
			}
		}
		for _, v := range readDashboard(t).Templating.List {
			if query, ok := strings.CutPrefix(v.queryText(), "label_values("); ok {
				selector, _, _ := strings.Cut(query, ",")
				all.check(t, "variable "+v.Name, selector)
			}
		}
	})
	t.Run("alerts", func(t *testing.T) {
		for _, a := range readAlerts(t) {
			all.check(t, "alert "+a.Alert, a.Expr)
		}
	})
	t.Run("keda", func(t *testing.T) { all.check(t, "the trigger", readScaledObject(t).Spec.Triggers[0].Metadata.Query) })
}

// watched is a cluster of three nodes that accept the tokens of an issuer.
type watched struct {
	*procs.Cluster
	token string // an operator's
	hasty string // of a user who may make one request a minute
}

// startWatched starts the cluster, which ends with the test.
func startWatched(ctx context.Context, t *testing.T) *watched {
	t.Helper()
	binary, err := procs.Build(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	authority := certstest.NewAuthority(t, "nodes")
	paths := certstest.Write(t, t.TempDir(), authority.Issue([]string{"127.0.0.1"}), authority)
	issuer := oidctest.New(t)
	claims := issuer.Claims("prometheus", "ops")
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	w := &watched{token: issuer.Sign(claims)}
	claims = issuer.Claims("dashboard", "hasty")
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	w.hasty = issuer.Sign(claims)
	settings := filepath.Join(t.TempDir(), "claimq.yaml")
	oidc := fmt.Sprintf("oidc: {issuer: %q, audience: %s, roles: [{group: ops, role: operator, rate_limit_per_minute: 0}, {group: hasty, role: reader, rate_limit_per_minute: 1}]}\n", issuer.URL, oidctest.Audience)
	if err := os.WriteFile(settings, []byte(oidc), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Cluster, err = procs.Start(ctx, procs.Config{
		Binary: binary, Dir: t.TempDir(), Nodes: 3, APIKey: w.token,
		Flags: []string{"--config", settings, "--peer-tls-cert-file", paths.Cert, "--peer-tls-key-file", paths.Key, "--peer-tls-ca-file", paths.CA, "--backup-every", "1h", "--backup-to", t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// scrapeNodes lets three nodes work, and returns their metrics.
func scrapeNodes(t *testing.T) scrape {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := startWatched(ctx, t)
	work(t, c)
	all := make(scrape)
	// The leader asks the others for their clocks every few seconds.
	for knows := ""; knows != "n1 n2 n3"; {
		if ctx.Err() != nil {
			t.Fatalf("the leader knows the clocks of %q only", knows)
		}
		for _, n := range c.Nodes {
			all.read(t, strings.NewReader(c.request(t, "GET", n.URL()+"/metrics", "")))
		}
		var nodes []string
		if ahead := all["claimq_clock_ahead_seconds"]; ahead != nil {
			for v := range ahead.values {
				nodes = append(nodes, strings.TrimPrefix(v, "node_id="))
			}
		}
		slices.Sort(nodes)
		knows = strings.Join(nodes, " ")
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return all
}

// work makes the nodes do things that show in metrics.
func work(t *testing.T, c *watched) {
	for i, n := range c.Nodes {
		tasks := n.URL() + "/api/tasks"
		for range 3 {
			c.request(t, "POST", tasks, `{"task_type":"mail","params":{}}`)
		}
		c.request(t, "POST", tasks, `{"nonsense":1}`)
		c.request(t, "POST", tasks+"/claim", `{"worker_id":"w1","task_types":["mail"],"limit":2}`)
		c.request(t, "POST", fmt.Sprintf("%s/%d/complete", tasks, 3*i+1), `{"worker_id":"w1"}`)
		c.request(t, "POST", fmt.Sprintf("%s/%d/fail", tasks, 3*i+2), `{"worker_id":"w1","error":"no","permanent":true}`)
		c.request(t, "GET", n.URL()+"/api/stats", "")
		for range 2 {
			c.requestBy(t, c.hasty, "GET", n.URL()+"/api/stats", "")
		}
	}
	for _, n := range c.Nodes {
		body := c.request(t, "GET", n.URL()+"/metrics", "")
		if samples := strings.Count(body, "\n") - strings.Count(body, "# "); samples > samplesMax {
			t.Errorf("%s tells %d samples", n.ID, samples)
		}
	}
	c.request(t, "POST", c.Nodes[0].URL()+"/api/tasks", `{"task_type":"mail","params":{},"share_key":"tenant"}`)
	c.request(t, "PUT", c.Nodes[0].URL()+"/api/schedules/often", `{"task":{"params":{}},"every_ms":1000}`)
	finalize(t, c)
}

// finalize lets three processors claim the finalization of a parent, through each node: the
// first gets it.
func finalize(t *testing.T, c *watched) {
	var parent struct{ Task struct{ ID int } }
	submitted := c.request(t, "POST", c.Nodes[0].URL()+"/api/tasks", `{"steps":[{"step":"a","task_type":"scan","params":{}}],"finalize":"claim"}`)
	if err := json.Unmarshal([]byte(submitted), &parent); err != nil {
		t.Fatal(err)
	}
	id := parent.Task.ID
	c.request(t, "POST", fmt.Sprintf("%s/api/tasks/%d/finalization/claim", c.Nodes[0].URL(), id), `{"processor_id":"p1"}`) // not ready
	c.request(t, "POST", fmt.Sprintf("%s/api/tasks/%d/claim", c.Nodes[1].URL(), id+1), `{"worker_id":"w1"}`)
	c.request(t, "POST", fmt.Sprintf("%s/api/tasks/%d/complete", c.Nodes[2].URL(), id+1), `{"worker_id":"w1"}`)
	for i, n := range c.Nodes {
		processor := fmt.Sprintf(`{"processor_id":"p%d"}`, i+1)
		for _, call := range []string{"claim", "extend", "release"} {
			c.request(t, "POST", fmt.Sprintf("%s/api/tasks/%d/finalization/%s", n.URL(), id, call), processor)
		}
	}
}

// request makes a request as the operator.
func (c *watched) request(t *testing.T, method, url, body string) string {
	t.Helper()
	return c.requestBy(t, c.token, method, url, body)
}

// requestBy returns the body of the answer, whatever its status.
func (c *watched) requestBy(t *testing.T, token, method, url, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

var (
	samplePattern = regexp.MustCompile(`^([a-z_][a-z0-9_]*)(?:\{(.*)\})? \S+$`)
	labelPattern  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// read adds a node's metrics in Prometheus's text format.
func (s scrape) read(t *testing.T, r io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if kind, ok := strings.CutPrefix(lines.Text(), "# TYPE "); ok {
			name, kind, _ := strings.Cut(kind, " ")
			if s[name] == nil {
				s[name] = &metric{kind: kind, labels: make(map[string]bool), values: make(map[string]bool)}
			}
			continue
		}
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		sample := samplePattern.FindStringSubmatch(lines.Text())
		if sample == nil {
			t.Fatalf("a node tells %q", lines.Text())
		}
		m := s.of(sample[1])
		if m == nil {
			t.Fatalf("a node does not tell the type of %s", sample[1])
		}
		for _, l := range labelPattern.FindAllStringSubmatch(sample[2], -1) {
			if l[1] != "le" && l[1] != "quantile" {
				m.labels[l[1]], m.values[l[1]+"="+l[2]] = true, true
			}
		}
	}
}

// of returns the metric of a series, or nil.
func (s scrape) of(series string) *metric {
	if m := s[series]; m != nil {
		return m
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name, ok := strings.CutSuffix(series, suffix)
		if m := s[name]; ok && m != nil && (m.kind == "histogram" || m.kind == "summary") {
			return m
		}
	}
	return nil
}

var (
	matchersPattern = regexp.MustCompile(`\{[^}]*\}`)
	stringPattern   = regexp.MustCompile(`"[^"]*"`)
	seriesPattern   = regexp.MustCompile(`\b(?:claimq|finalization|go|process)_[a-z0-9_]+|\bup\b|\bALERTS\b`)
	selectorPattern = regexp.MustCompile(`\b((?:claimq|finalization|go|process)_[a-z0-9_]+)\{([^}]*)\}`)
	matcherPattern  = regexp.MustCompile(`([a-z_]+) *(=~|!~|!=|=) *"([^"]*)"`)
	groupingPattern = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right) *\(([^)]*)\)`)
)

// seriesOf returns the names of the series in an expression.
func seriesOf(expr string) []string {
	bare := groupingPattern.ReplaceAllString(stringPattern.ReplaceAllString(matchersPattern.ReplaceAllString(expr, ""), ""), "")
	return seriesPattern.FindAllString(bare, -1)
}

// check checks that everything in an expression exists: its metrics, and the labels that it
// selects and groups by.
func (s scrape) check(t *testing.T, where, expr string) {
	t.Helper()
	// Labels that Prometheus adds, or that histograms and summaries have.
	always := map[string]bool{"job": true, "instance": true, "le": true, "quantile": true}
	known := maps.Clone(always)
	series := seriesOf(expr)
	if len(series) == 0 {
		t.Errorf("%s asks for no metric: %s", where, expr)
	}
	for _, name := range series {
		if name == "up" {
			continue // Prometheus's own
		}
		if name == "ALERTS" { // also Prometheus's, with the labels of the alerts
			for _, l := range []string{"alertname", "severity", "node_id", "task_type"} {
				known[l] = true
			}
			continue
		}
		m := s.of(name)
		if m == nil {
			t.Errorf("%s asks for %s, which no node tells", where, name)
			continue
		}
		maps.Copy(known, m.labels)
	}
	for _, selector := range selectorPattern.FindAllStringSubmatch(expr, -1) {
		m := s.of(selector[1])
		for _, matcher := range matcherPattern.FindAllStringSubmatch(selector[2], -1) {
			label, value := matcher[1], matcher[3]
			if m == nil || always[label] {
				continue
			}
			if !m.labels[label] || matcher[2] == "=" && !m.values[label+"="+value] {
				t.Errorf("%s selects %s by %s=%s, which it does not have", where, selector[1], label, value)
			}
		}
	}
	for _, group := range groupingPattern.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(group[1], ",") {
			if l = strings.TrimSpace(l); l != "" && !known[l] {
				t.Errorf("%s groups by %s, which nothing in it has: %s", where, l, expr)
			}
		}
	}
}
