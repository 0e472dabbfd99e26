package browser

import (
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/proof"
)

var shots = flag.String("shots", "", "folder for screenshots")

// hostile is the worst text that a task may contain: markup, quotes, marks that reverse the text, a
// very long line.
const hostile = `<script>alert(1)</script><img src=x onerror=alert(1)>"'` + "\u202e" + `&lt;{{x}}`

// place is a view: its path, and the error that it shows, if any.
type place struct{ path, wrong string }

// fill creates data to look at in the cluster, and returns all views.
func fill(t testing.TB, n *procs.Node) []place {
	t.Helper()
	text := func(s string) string { return quote(s) }
	submit := func(body string) uint64 {
		var answer struct{ Task struct{ ID uint64 } }
		if err := json.Unmarshal(call(t, n, "POST", "/api/tasks", body), &answer); err != nil {
			t.Fatal(err)
		}
		return answer.Task.ID
	}
	submit(`{"task_type":"mail","params":{"to":"ann@example.org","id":12345678901234567890},"labels":{"customer":"7"}}`)
	failed := submit(`{"task_type":"scan","params":` + text(hostile+strings.Repeat("long", 2000)) + `,"labels":{` + text(hostile[:20]) + `:` + text(hostile[:30]) + `},"max_attempts":1,"idempotency_key":` + text(hostile+rand.Text()) + `}`)
	call(t, n, "POST", fmt.Sprintf("/api/tasks/%d/claim", failed), `{"worker_id":"w1"}`)
	call(t, n, "POST", fmt.Sprintf("/api/tasks/%d/fail", failed), `{"worker_id":"w1","error":`+text(hostile+strings.Repeat("x", 16_000))+`}`)
	held := submit(`{"task_type":"mail","params":1,"priority":9}`)
	call(t, n, "POST", fmt.Sprintf("/api/tasks/%d/claim", held), `{"worker_id":"w1","lease_ms":3600000}`)
	tenant := hostile[:60]
	for _, key := range []string{"acme", "acme", "initech", tenant, tenant, tenant, strings.Repeat("k", 128)} {
		submit(`{"task_type":"tenants","params":1,"share_key":` + text(key) + `}`)
	}
	call(t, n, "PUT", "/api/types/tenants/shares/acme", `{"max_claimed":1,"weight":300,"rate_limit":0.5}`)
	call(t, n, "PUT", "/api/types/tenants/shares/initech", `{"paused":true}`)
	call(t, n, "POST", "/api/tasks/claim", `{"worker_id":"w1","task_types":["tenants"],"lease_ms":3600000}`)
	parent := submit(`{"task_type":"report","params":1,"steps":[{"step":"a","params":1},{"step":"b","params":2,"depends_on":["a"]}]}`)
	call(t, n, "PUT", "/api/schedules/nightly", `{"cron":"0 3 * * *","task":{"task_type":"report","params":1,"delay_ms":300000,"retention_ms":-1,"backoff":{"initial_ms":5000},"share_key":`+text(tenant)+`}}`)
	call(t, n, "PUT", "/api/schedules/weekly", `{"cron":"@weekly","task":{"task_type":"report","steps":[{"step":"a","params":1},{"step":"b","params":2,"depends_on":["a"]}]}}`)
	waiting := submit(`{"task_type":"release","params":1,"wait_for_signal_ms":86400000}`)
	var places []place
	for _, path := range []string{
		"/", "/types", "/types/mail", "/types/tenants", "/tasks", "/tasks?status=failed", fmt.Sprintf("/tasks/%d", failed), fmt.Sprintf("/tasks/%d", held), fmt.Sprintf("/tasks/%d", parent), fmt.Sprintf("/tasks/%d", waiting),
		"/failures", "/failures?type=scan", "/tasks?type=mail&status=pending", "/workers", "/workers/w1", "/schedules", "/schedules/nightly", "/schedules/weekly", "/trail", "/cluster",
	} {
		places = append(places, place{path: path})
	}
	return append(places,
		place{"/tasks/999999", "There is no such task, or it was removed"}, place{"/types/none", "There is no such type"}, place{"/schedules/none", "There is no such schedule"},
		place{"/tasks?label=none:none", "Nothing matches these filters"}, place{"/none", "There is no such page"},
		place{"/tasks?status=nonsense", "Invalid status"}, place{"/tasks/x", "Invalid id"})
}

// Every view, in both themes and at three widths: nothing scrolls sideways or crosses the edge of
// its tile, nothing breaks the policy or throws, axe finds nothing, and texts of tasks stay text.
func TestViews(t *testing.T) {
	n := cluster(t).Nodes[0]
	places := fill(t, n)
	axe := axeSource(t)
	b := open(t)
	b.enter(n.URL(), "ops")
	for _, view := range places {
		path := view.path
		b.goTo(path)
		b.says(view.wrong)
		for _, at := range []struct {
			width int64
			theme string
		}{{1440, "light"}, {640, "light"}, {320, "light"}, {1440, "dark"}, {640, "dark"}, {320, "dark"}, {1440, forced}} {
			b.size(at.width, at.theme)
			where := fmt.Sprintf("%s at %d, %s", path, at.width, at.theme)
			if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
				t.Errorf("%s: it scrolls sideways by %d", where, over)
			}
			for _, over := range eval[[]string](b, `[...document.querySelectorAll("main .stat, main .card")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText.split("\n")[0])`) {
				t.Errorf("%s: %q runs past its edge", where, over)
			}
			if eval[bool](b, `document.querySelector("main script, main img") !== null`) {
				t.Errorf("%s: a task's text is markup", where)
			}
			switch {
			case proof.Whole() || at.width == 1440 && at.theme == "light":
				b.accessible(where, axe, axeAll)
			case at.width == 1440:
				b.accessible(where, axe, axeColours)
			}
			b.shot(path, at.width, at.theme)
		}
		if said := eval[string](b, `[...document.querySelectorAll("main [role=alert]")].map((e) => e.innerText).join("\\n")`); said != "" && view.wrong == "" {
			t.Errorf("%s: it says %s", path, said)
		}
	}
	b.clean("the views")
}

// On a phone the overview shows what needs attention without scrolling, and on a wide screen the failures have their
// bars beside an opened example that ends where the page does.
func TestFirstSight(t *testing.T) {
	n := cluster(t).Nodes[0]
	for i := range 3 {
		failedTask(t, n, "sight", fmt.Sprintf("dial tcp 10.0.0.%d: connection refused", i))
	}
	failedTask(t, n, "sight", "no such mailbox")
	b := open(t)
	b.enter(n.URL(), "ops")
	b.goTo("/")
	b.says("failed for good in the last hour")
	for _, theme := range []string{"light", "dark"} {
		b.size(390, theme)
		if bottom := eval[float64](b, `[...document.querySelectorAll("main li")].find((e) => e.innerText.includes("last hour")).getBoundingClientRect().bottom`); bottom > 844 {
			t.Errorf("what needs attention ends at %v, below a phone's screen", bottom)
		}
		b.shot("/first-sight", 390, theme)
	}
	b.goTo("/failures?type=sight")
	b.says("3 in the last hour")
	for _, at := range []struct {
		width int64
		theme string
	}{{1440, "light"}, {1440, "dark"}, {390, "light"}, {390, "dark"}} {
		b.size(at.width, at.theme)
		if bars := eval[int](b, `document.querySelectorAll(".failure .hours rect").length`); bars != 2*24 {
			t.Errorf("%d bars of two groups", bars)
		}
		b.shot("/failures-sight", at.width, at.theme)
	}
	b.size(1440, "light")
	if free := eval[float64](b, `document.querySelector("main .card:has(.failures)").getBoundingClientRect().right - document.querySelector(".failure-example:not([hidden])").getBoundingClientRect().right`); free > 40 {
		t.Errorf("the example ends %v before the edge of its card", free)
	}
	b.clean("at first sight")
}

// The list of types is bounded: the node sorts and searches it, and more types are loaded on
// demand.
func TestTypes(t *testing.T) {
	const many = 250
	n := cluster(t).Nodes[0]
	var ops []string
	for i := range many {
		ops = append(ops, fmt.Sprintf(`{"op":"submit","task_type":"many-%03d","params":1,"priority":%d}`, i, i))
	}
	call(t, n, "POST", "/api/batch", `{"return":"minimal","ops":[`+strings.Join(append(ops, ops[77]), ",")+`]}`)
	const rows = `[...document.querySelectorAll("main tbody tr")].map((row) => row.querySelector("th").innerText)`
	b := open(t)
	b.enter(n.URL(), "ops")
	b.goTo("/types")
	b.press("/")
	b.press("many-")
	b.until(rows + `.length === 200 && ` + rows + `[0] === "many-000" && document.querySelector("main").innerText.includes("200 of 250 rows")`)
	b.tabTo("Pending")
	b.press(kb.Enter)
	b.until(rows + `[0] === "many-077" && document.querySelector("[aria-sort=descending]").innerText.startsWith("Pending")`)
	eval[bool](b, `([...document.querySelectorAll("main button")].find((e) => e.innerText === "Show 50 more").click(), true)`)
	b.until(rows + `.length === 250`)
	b.press("/", kb.End, "24")
	b.until(rows + `.join() === "many-240,many-241,many-242,many-243,many-244,many-245,many-246,many-247,many-248,many-249"`)
	b.goTo("/failures")
	b.goTo("/types/many-001")
	b.press("n")
	b.until(`document.querySelectorAll("dialog[open] datalist option").length === 200`)
	for _, asked := range eval[[]string](b, `performance.getEntriesByType("resource").map((e) => e.name).filter((name) => name.includes("/api/types?"))`) {
		if !strings.Contains(asked, "limit=") {
			t.Errorf("it asks for all types: %s", asked)
		}
	}
	b.clean("the types")
}

// shot saves a screenshot if that was requested.
func (b tab) shot(path string, width int64, theme string) {
	if *shots == "" {
		return
	}
	name := filepath.Join(*shots, fmt.Sprintf("%s-%d-%s.png", url.PathEscape(strings.Trim(path, "/")), width, theme))
	if err := os.WriteFile(name, do(b, chromedp.FullScreenshot(100)), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Limits of the first load: bytes as transferred, and requests.
const (
	loadBytes    = 90 << 10
	loadRequests = 40
)

// The first load is small, and uses no other host.
func TestBudget(t *testing.T) {
	b := open(t)
	do(b, chromedp.Navigate(cluster(t).Nodes[0].URL()+"/ui/"))
	b.until(`document.querySelector("#key") !== null`)
	loaded := eval[struct {
		Bytes, Requests int
		Others          []string
	}](b, `(() => { const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
		return {Bytes: all.reduce((n, e) => n + e.encodedBodySize, 0), Requests: all.length, Others: all.map((e) => e.name).filter((n) => new URL(n).origin !== location.origin)}; })()`)
	if loaded.Bytes > loadBytes || loaded.Bytes < 10_000 || loaded.Requests > loadRequests || len(loaded.Others) > 0 {
		t.Errorf("the first load is %d bytes in %d requests, of other hosts %v", loaded.Bytes, loaded.Requests, loaded.Others)
	}
	t.Logf("%d bytes, %d requests", loaded.Bytes, loaded.Requests)
}
