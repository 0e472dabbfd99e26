package browser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// A login is valid at each node, and survives a reload. A page at another port of the same
// host is sent the cookie, but can neither read nor change anything with it by any means of
// a browser.
//
// For the browser, claimq.test is not a loopback address, so it sends no Sec-Fetch-Site
// there.
func TestLogin_OtherPort(t *testing.T) {
	for _, name := range []string{"127.0.0.1", "claimq.test"} {
		t.Run(name, func(t *testing.T) { otherPort(t, name) })
	}
}

// otherPort tries this with pages whose host has this name for the browser.
func otherPort(t *testing.T, name string) {
	n := cluster(t).Nodes[0]
	own := "http://" + strings.Replace(n.HTTPAddr, "127.0.0.1", name, 1)
	b := open(t)
	b.enter(own, "ops")
	do(b, chromedp.Reload())
	b.until(`document.querySelector("h1") !== null && document.querySelector("#key") === null`)
	number := eval[string](b, `localStorage.getItem("claimq.n")`)
	if len(number) != 22 {
		t.Fatalf("the page keeps %q", number)
	}

	var mu sync.Mutex
	sent, site := "", "none"
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		sent += r.Header.Get("Cookie")
		if r.URL.Path == "/site" {
			site = r.Header.Get("Sec-Fetch-Site")
		}
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<h1>other</h1>")) // the browser may be gone
	}))
	defer other.Close()
	do(b, chromedp.Navigate(strings.Replace(other.URL, "127.0.0.1", name, 1)))
	eval[int](b, `fetch("/site").then((r) => r.status)`)
	mu.Lock()
	if want := map[string]string{"127.0.0.1": "same-origin"}[name]; site != want {
		t.Errorf("Sec-Fetch-Site is %q, want %q: this test tries something else", site, want)
	}
	if !strings.Contains(sent, "claimq=v1.ops.") || strings.Contains(sent, number) {
		t.Errorf("the other port is sent %q: this test cannot tell", sent)
	}
	mu.Unlock()
	api := own + "/api/tasks"
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
	if err := json.Unmarshal(call(t, n, "GET", "/api/tasks?task_type=stolen", ""), &list); err != nil || len(list.Tasks) > 0 {
		t.Errorf("a page at another port submitted %v, %v", list.Tasks, err)
	}
	// The page itself goes on.
	do(b, chromedp.Navigate(own+"/ui/"))
	b.until(`document.querySelector("h1") !== null && document.querySelector("#key") === null`)
}
