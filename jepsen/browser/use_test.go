package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// navigate goes to an address.
func navigate(address string) chromedp.Action[chromedp.Void] { return chromedp.Navigate(address) }

// failedTask creates a task that has finally failed, and returns its id.
func failedTask(t testing.TB, n *procs.Node, taskType, why string) uint64 {
	t.Helper()
	var made struct{ Task struct{ ID uint64 } }
	if err := json.Unmarshal(call(t, n, "POST", "/api/tasks", fmt.Sprintf(`{"task_type":%q,"params":1,"max_attempts":1}`, taskType)), &made); err != nil {
		t.Fatal(err)
	}
	call(t, n, "POST", fmt.Sprintf("/api/tasks/%d/claim", made.Task.ID), `{"worker_id":"w1"}`)
	call(t, n, "POST", fmt.Sprintf("/api/tasks/%d/fail", made.Task.ID), fmt.Sprintf(`{"worker_id":"w1","error":%q}`, why))
	return made.Task.ID
}

// A type's view lists its share keys, those with most pending tasks first. An operator pauses one, which keeps its other
// settings, and gives another settings, also before it has tasks; a reader may not.
func TestShares(t *testing.T) {
	n := cluster(t).Nodes[0]
	for _, key := range []string{"small", "large", "large", "large"} {
		call(t, n, "POST", "/api/tasks", fmt.Sprintf(`{"task_type":"shared","params":1,"share_key":%q}`, key))
	}
	call(t, n, "PUT", "/api/types/shared/shares/large", `{"weight":300}`)
	b := open(t)
	b.enter(n.URL(), "ops")
	b.goTo("/types/shared")
	const rows = `[...document.querySelectorAll("main tr")].filter((e) => e.innerText.includes("Pause") || e.innerText.includes("Resume")).map((e) => e.innerText.split(/\s+/).slice(0, 2).join(" ")).join(", ")`
	b.until(rows + ` === "large 3, small 1"`)
	shares := func(want string) {
		t.Helper()
		if got := string(call(t, n, "GET", "/api/types/shared/shares?settings=true", "")); !strings.Contains(got, want) {
			t.Errorf("the shares are %s, want %s", got, want)
		}
	}
	const button = `[...document.querySelectorAll("main button")].find((e) => !e.disabled && e.textContent === `
	has := func(text string) {
		t.Helper()
		b.until(button + quote(text) + ") !== undefined")
	}
	click := func(text string) {
		t.Helper()
		has(text)
		eval[bool](b, button+quote(text)+").click() === undefined")
	}
	click("Pause large")
	has("Resume large")
	shares(`"paused":true,"max_claimed":null,"weight":300,"rate_limit":null`)
	click("Resume large")
	has("Pause large")
	shares(`"paused":false,"max_claimed":null,"weight":300,"rate_limit":null`)
	click("Change one…")
	b.until(`document.activeElement.name === "share_key"`)
	b.press("new one", kb.Tab, "2", kb.Tab, "0.5", kb.Enter)
	b.until(`document.querySelector("dialog[open]") === null`)
	b.says("at most 2, 0.5/s")
	shares(`"share_key":"new one","pending":0,"claimed":0,"oldest_wait_ms":0,"state":"open","opens_at":null,"paused":false,"max_claimed":2,"weight":100,"rate_limit":0.5`)
	click("Change new one")
	b.until(`document.activeElement.name === "max_claimed"`)
	b.press(kb.Tab, kb.Tab, "20000", kb.Enter)
	b.says("an integer from 1 to 10000")
	b.press(kb.Escape)
	b.size(390, "light")
	b.shot("/shares", 390, "light")
	b.clean("shares")

	b = open(t)
	b.enter(n.URL(), "reads")
	b.goTo("/types/shared")
	b.until(rows + ` === "large 3, small 1, new one"`)
	if got := eval[string](b, enabledActs); got != "" {
		t.Errorf("a reader is offered %s", got)
	}
}

// Using only the keyboard from the first load: log in, find the failed tasks of an error, read
// the reason, see how many a retry would affect, retry them, and find out why one of them does
// not run.
func TestKeyboard(t *testing.T) {
	n := cluster(t).Nodes[0]
	const many = 7
	var id uint64
	for range many {
		id = failedTask(t, n, "keyboard", "dial tcp 10.0.0.7: connection refused\nand a second line")
	}
	b := open(t)
	do(b, navigate(n.URL()+"/ui/"))
	b.until(`document.activeElement.id === "key"`)
	b.press(keyOf("ops"), kb.Enter)
	b.until(`document.querySelector("#key") === null && document.querySelector(".stat") !== null`)
	b.press("g", "f")
	b.until(`[...document.querySelectorAll(".failure")].some((e) => e.innerText.includes("keyboard"))`)
	for !eval[bool](b, `document.activeElement.closest(".failure")?.innerText.includes("keyboard") ?? false`) {
		before := eval[string](b, `document.activeElement.closest(".failure")?.innerText ?? ""`)
		b.press("j")
		if eval[string](b, `document.activeElement.closest(".failure")?.innerText ?? ""`) == before {
			t.Fatalf("j does not lead to the group, but to %q", before)
		}
	}
	do(b, chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)))
	if eval[bool](b, `document.activeElement.getAttribute("aria-expanded") === "true"`) { // that of the largest group
		b.press(kb.Enter)
		b.until(`document.activeElement.getAttribute("aria-expanded") === "false"`)
	}
	b.press(kb.Enter)
	b.says("and a second line")
	b.tabTo("Retry…")
	b.press(kb.Enter)
	b.until(`document.querySelector("dialog[open]")?.innerText.includes("Retry 7 tasks") ?? false`)
	b.tabTo(fmt.Sprintf("Retry %d", many))
	b.press(kb.Enter)
	b.says(fmt.Sprintf("%d tasks retried", many))
	b.press(kb.Escape)
	b.until(`document.querySelector("dialog[open]") === null`)
	b.until(`![...document.querySelectorAll(".failure")].some((e) => e.innerText.includes("keyboard"))`)
	if body := eval[bool](b, `document.activeElement === document.body`); body {
		t.Error("the focus is lost with the group")
	}
	if told := string(call(t, n, "GET", fmt.Sprintf("/api/tasks/%d", id), "")); !strings.Contains(told, `"status":"pending"`) {
		t.Errorf("the task is %s", told)
	}
	b.press("g", "t")
	b.until(`document.querySelector("h1").innerText === "Tasks" && document.querySelector("[data-row]") !== null`)
	b.press("/", fmt.Sprint(id), kb.Enter)
	b.says("Why it is not running")
	b.says("No worker has asked")
	b.clean("by keys")
}

// hidden is the start of a script that tells a page whether it is visible.
const hidden = `Object.defineProperty(document, "hidden", {configurable: true, value: `

// hide hides the page of the tab, or shows it again, by telling it what a browser would tell
// it: without a screen all tabs are visible.
func (b tab) hide(out bool) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`(%s%v}), document.dispatchEvent(new Event("visibilitychange")))`, hidden, out))
}

// Eleven tabs: all but the visible one, even those that were opened hidden, request nothing
// and hold no stream, so that the visible one is served and has its stream; a tab that becomes
// visible makes requests at once.
func TestTabs(t *testing.T) {
	const tabs = 10
	d := openDoor(t, cluster(t).Nodes[0], "")
	seen := open(t)
	seen.enter(d.URL, "ops")
	eval[bool](seen, `(localStorage.setItem("claimq.settings", '{"refresh":1}'), true)`)
	others := make([]tab, tabs)
	for i := range others {
		others[i] = seen.another()
		if i >= tabs/2 {
			send(others[i], page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: hidden + "true})"})
		}
		do(others[i], navigate(d.URL+"/ui/#/"+[]string{"trail", ""}[i%2]))
		others[i].until(`document.querySelector(".view") !== null`)
		others[i].hide(true)
	}
	do(seen, chromedp.Reload())
	seen.hide(true)
	testwait.Until(t, "no stream is open", func() bool { return d.answering("/api/events") == 0 })
	seen.hide(false)
	seen.goTo("/workers")
	testwait.Until(t, "the tab in sight has its stream", func() bool { return d.answering("/api/events") == 1 })
	before, stats := map[string]int{}, []string{"/api/types", "/api/events", "/api/stats", "/api/history", "/api/schedules"}
	for _, path := range stats {
		before[path] = d.count(path)
	}
	asked := d.count("/api/workers")
	testwait.Until(t, "the tab in sight has asked five times", func() bool { return d.count("/api/workers") >= asked+5 })
	for _, path := range stats {
		if got := d.count(path); got != before[path] {
			t.Errorf("tabs out of sight asked %d times for %s", got-before[path], path)
		}
	}
	others[1].hide(false)
	testwait.Until(t, "what is looked at again asks", func() bool { return d.count("/api/types") > before["/api/types"] })
}

// Times are in the browser's time zone, both when shown and when entered.
func TestTimeZone(t *testing.T) {
	n := cluster(t).Nodes[0]
	zone := time.FixedZone("GMT+5:30", 5*3600+1800)
	b := open(t)
	send(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"})
	id := failedTask(t, n, "zone", "late")
	b.enter(n.URL(), "ops")
	b.goTo(fmt.Sprintf("/tasks/%d", id))
	times := eval[[][2]string](b, `[...document.querySelectorAll("time")].map((e) => [e.dateTime, e.title])`)
	if len(times) == 0 {
		t.Error("there is no time")
	}
	for _, pair := range times {
		at, err := time.Parse(time.RFC3339Nano, pair[0])
		if want := at.In(zone).Format("2006-01-02 15:04:05 MST"); err != nil || pair[1] != want {
			t.Errorf("%s is shown as %s, want %s, %v", pair[0], pair[1], want, err)
		}
	}
	b.goTo("/tasks?after=2026-11-21T10:00&type=zone")
	b.until(`performance.getEntriesByType("resource").some((e) => e.name.includes("created_after=2026-11-21T04%3A30%3A00.000Z"))`)
}

// The form of a schedule shows when its plan would run next, or the node's error; a schedule
// shows its next ten times.
func TestSchedule(t *testing.T) {
	n := cluster(t).Nodes[0]
	b := open(t)
	send(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Paris"})
	b.enter(n.URL(), "ops")
	b.goTo("/schedules")
	b.tabTo("New schedule")
	b.press(kb.Enter)
	b.until(`document.querySelector("dialog[open] input") !== null`)
	b.press("leap", kb.Tab, kb.Tab, "0 12 29 2")
	b.until(`document.querySelector("dialog[open]").innerText.includes("it must have five fields")`)
	b.press(" *")
	const times = `[...document.querySelectorAll(".slots time")].map((e) => e.dateTime.slice(0, 10)).join()`
	b.until(times + ` === "2028-02-29,2032-02-29,2036-02-29,2040-02-29,2044-02-29"`)
	b.says("29 Feb 2028, 12:00:00 Europe/Paris")
	b.press(kb.Enter)
	b.until(`document.querySelector("h1").innerText === "leap" && ` + times + `.startsWith("2028-02-29,2032-02-29") && ` + times + `.split(",").length === 10`)
	b.clean("a schedule")
}

// A task that waits for a signal says until when and how to send it, and who may send it can do so.
func TestSignal(t *testing.T) {
	n := cluster(t).Nodes[0]
	var got struct {
		Task struct {
			ID     uint64
			Status string
			Signal json.RawMessage
		}
	}
	read := func(method, target, body string) {
		t.Helper()
		if err := json.Unmarshal(call(t, n, method, target, body), &got); err != nil {
			t.Fatal(err)
		}
	}
	read("POST", "/api/tasks", `{"task_type":"approve","params":1,"wait_for_signal_ms":86400000}`)
	b, target := open(t), fmt.Sprintf("/tasks/%d", got.Task.ID)
	b.enter(n.URL(), "ops")
	b.goTo(target)
	b.says("Without one it fails")
	b.says(fmt.Sprintf("claimq signal %d", got.Task.ID))
	b.tabTo("Send a signal")
	b.press(kb.Enter)
	b.until(`document.querySelector("dialog[open] textarea") !== null`)
	b.tabTo("Send it")
	b.press(kb.Enter)
	b.until(`document.querySelector("dialog[open]") === null && document.querySelector(".lead").innerText.includes("pending")`)
	b.clean("a task that had its signal")
	if read("GET", "/api"+target, ""); got.Task.Status != "pending" || string(got.Task.Signal) != `{"approved": true}` {
		t.Errorf("it is %s, with the signal %s", got.Task.Status, got.Task.Signal)
	}
}

// The page of a task and that of a schedule show what was submitted, in words.
func TestFacts(t *testing.T) {
	n := cluster(t).Nodes[0]
	var got struct{ Task struct{ ID uint64 } }
	answer := call(t, n, "POST", "/api/tasks", `{"task_type":"facts","params":1,"expires_at":"2999-01-01T00:00:00Z","expires_again":true,"idempotency_key":"facts","unique":"window","unique_ms":3600000}`)
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	const task = `{"task_type":"facts","delay_ms":420000,"retention_ms":-1,"backoff":{"initial_ms":5000},"share_key":"ann","params":1}`
	call(t, n, "PUT", "/api/schedules/facts", `{"cron":"@yearly","task":`+task+`}`)
	call(t, n, "PUT", "/api/schedules/bare", `{"cron":"@yearly","task":{"steps":[{"step":"a","params":1}]}}`)
	b := open(t)
	b.enter(n.URL(), "ops")
	for path, facts := range map[string][]string{
		fmt.Sprintf("/tasks/%d", got.Task.ID): {"also while it waits after a claim", "taken for 1 h after its submit"},
		"/schedules/facts":                    {"7 min", "until deleted", "5 s", "ann", "Params of its task"},
	} {
		b.goTo(path)
		for _, fact := range facts {
			b.says(fact)
		}
	}
	b.goTo("/schedules/bare")
	b.says("1 step")
	if eval[bool](b, `document.querySelector("main").innerText.includes("Params of its task")`) {
		t.Error("a schedule without params shows some")
	}
	b.clean("what was submitted")
}
