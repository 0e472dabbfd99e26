package browser

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claimq/claimq/internal/testwait"
)

// A form that is being filled in stays as it is while the leader is killed and another one
// leads, and what the page shows is this node's own meanwhile.
func TestLeaderKilled(t *testing.T) {
	nodes := cluster(t)
	leader, err := nodes.WaitLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := nodes.Nodes[0]
	if n == leader {
		n = nodes.Nodes[1]
	}
	b := open(t)
	b.enter(n)
	do(b, chromedp.KeyEvent("n"))
	b.until(`document.querySelector("dialog[open] input") !== null`)
	do(b, chromedp.SendKeys("dialog[open] input", "mail"))
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	next, err := nodes.WaitLeader(t.Context(), leader)
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the new leader takes a task", func() bool {
		_, status := try(t, next, "POST", "/api/tasks", `{"task_type":"after","params":1}`)
		return status == http.StatusCreated
	})
	if value := eval[string](b, `document.querySelector("dialog[open] input")?.value ?? "the dialog is gone"`); value != "mail" {
		t.Errorf("the field has %q", value)
	}
	if !eval[bool](b, `document.querySelector("dialog[open]").contains(document.activeElement)`) {
		t.Error("the focus has left the dialog")
	}
	do(b, chromedp.KeyEvent("\u001b"))
	b.until(`document.querySelector("dialog[open]") === null`)
	b.goTo("/types")
	b.until(`document.querySelector("main").innerText.includes("after")`)
}

// A login is known at each node, and over a reload. A page at another port of the same
// host is sent the cookie, and can neither read nor change anything with it, by whatever way
// a browser has.
func TestLogin_OtherPort(t *testing.T) {
	nodes := cluster(t)
	n := nodes.Nodes[0]
	b := open(t)
	b.enter(n)
	do(b, chromedp.Reload())
	b.until(`document.querySelector("h1") !== null && document.querySelector("#key") === null`)
	number := eval[string](b, `localStorage.getItem("claimq.n")`)
	if len(number) != 22 {
		t.Fatalf("the page keeps %q", number)
	}

	var mu sync.Mutex
	sent := ""
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sent += r.Header.Get("Cookie")
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>other</h1>")) // the browser has gone, if it fails
	}))
	host, _, err := net.SplitHostPort(n.HTTPAddr)
	if err != nil {
		t.Fatal(err)
	}
	if other.Listener, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		t.Fatal(err)
	}
	other.Start()
	defer other.Close()
	do(b, chromedp.Navigate(other.URL))
	mu.Lock()
	if !strings.Contains(sent, "claimq=v1.ops.") || strings.Contains(sent, number) {
		t.Errorf("the other port is sent %q: this test cannot tell", sent)
	}
	mu.Unlock()
	api := n.URL() + "/api/tasks"
	told := eval[string](b, `(async () => {
		const out = [], body = '{"task_type":"stolen","params":1}';
		const text = async (what, made) => { try { const r = await made(); out.push(what + ": " + r.type + " " + await r.text()); } catch (e) { out.push(what + ": refused"); } };
		for (const mode of ["cors", "no-cors"]) for (const headers of [{}, {"X-Claimq-Page": `+quote(number)+`}]) {
			await text(mode + " GET", () => fetch(`+quote(api)+`, {mode, headers, credentials: "include"}));
			await text(mode + " POST", () => fetch(`+quote(api)+`, {mode, headers, credentials: "include", method: "POST", body}));
		}
		const frame = (name) => new Promise((done) => { const f = document.createElement("iframe"); f.name = name; f.onload = () => done(f); document.body.append(f); if (name === "api") f.src = `+quote(api)+`; });
		const f = await frame("api"); let seen = "nothing"; try { seen = f.contentDocument.body.innerText; } catch (e) {} out.push("frame: " + seen);
		await frame("form"); const form = document.createElement("form"); Object.assign(form, {method: "post", action: `+quote(api)+`, enctype: "text/plain", target: "form"});
		const input = document.createElement("input"); input.name = '{"task_type":"stolen","params":"'; input.value = '"}'; form.append(input); document.body.append(form);
		await new Promise((done) => { document.querySelector("[name=form]").onload = done; form.submit(); });
		return out.join("\n"); })()`)
	if strings.Contains(told, `"success":true`) || strings.Contains(told, "tasks") {
		t.Errorf("a page at another port read something:\n%s", told)
	}
	var list struct{ Tasks []any }
	if err := json.Unmarshal(call(t, n, "GET", "/api/tasks", ""), &list); err != nil || len(list.Tasks) > 0 {
		t.Errorf("a page at another port submitted %v, %v", list.Tasks, err)
	}
	// The page itself goes on.
	do(b, chromedp.Navigate(n.URL()+"/ui/"))
	b.until(`document.querySelector("h1") !== null && document.querySelector("#key") === null`)
}
