package browser

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds how long a test waits for the page: a machine may be busy.
const patience = 60 * time.Second

// pollPause is how often a tab is looked at again. At each of its frames, as is the default,
// it would paint all the time.
const pollPause = 20 * time.Millisecond

// watcher notes in each document what must not happen in it.
const watcher = `window.bad = [];
addEventListener("securitypolicyviolation", (e) => bad.push("CSP: " + e.violatedDirective + " " + e.blockedURI));
addEventListener("error", (e) => bad.push("error: " + e.message));
addEventListener("unhandledrejection", (e) => bad.push("rejection: " + e.reason));
for (const name of ["error", "warn"]) { const old = console[name]; console[name] = (...a) => { bad.push(name + ": " + a.join(" ")); old.apply(console, a); }; }`

// tab is a tab of the browser.
type tab struct {
	t   testing.TB
	ctx context.Context
}

// launched is the browser of all tests, Chromium without what is around a page: to paint its
// tool bar takes more than the page. The first that asks for it starts it.
var launched struct {
	once sync.Once
	ctx  context.Context
	stop context.CancelFunc // waits until it has ended
	dir  string             // its profile
	err  error
}

// launch starts the browser. For it, claimq.test is this machine, and no loopback address.
func launch() {
	if launched.dir, launched.err = os.MkdirTemp("", "claimq-browser-"); launched.err != nil {
		return
	}
	// As root there is no sandbox. The rest keeps it from calling home.
	alloc, _ := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath("/usr/bin/chromium-headless-shell"), chromedp.NoSandbox, chromedp.UserDataDir(launched.dir),
		chromedp.Flag("headless", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("host-resolver-rules", "MAP claimq.test 127.0.0.1"))
	launched.ctx, launched.stop = chromedp.NewContext(alloc)
	_, launched.err = chromedp.Run(launched.ctx, chromedp.Navigate("about:blank"))
}

// quit ends the browser, if there is one.
func quit() {
	if launched.stop != nil {
		launched.stop()
	}
	if launched.dir != "" {
		_ = os.RemoveAll(launched.dir) // it is a folder for temporary files
	}
}

// open opens a tab of a person who has not used the browser before: no other knows its
// cookies and what it keeps.
func open(t testing.TB) tab {
	t.Helper()
	launched.once.Do(launch)
	if launched.err != nil {
		t.Fatal(launched.err)
	}
	return tab{t, launched.ctx}.another(chromedp.WithNewBrowserContext())
}

// another opens another tab of the same person.
func (b tab) another(options ...chromedp.ContextOption) tab {
	b.t.Helper()
	ctx, end := chromedp.NewContext(b.ctx, options...)
	b.t.Cleanup(end)
	made := tab{b.t, ctx}
	send(made, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher})
	return made
}

// send sends the tab a command of the browser's protocol.
func send[P, R any](b tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	return do(b, chromedp.Action[R](func(ctx context.Context, to *chromedp.Target) (R, error) {
		return cdp.Call(ctx, to, command, params)
	}))
}

// do does something in the tab.
func do[T any](b tab, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// eval evaluates an expression, which may be a promise.
func eval[T any](b tab, expression string) T {
	b.t.Helper()
	return do(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits until an expression is true, over loads of the page.
func (b tab) until(expression string) {
	b.t.Helper()
	for {
		_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(pollPause), chromedp.WithPollingTimeout(patience)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "Cannot find context") {
			b.t.Fatalf("%s: %v; the page is\n%.2000s", expression, err, eval[string](b, `document.body.innerText`))
		}
	}
}

// clean fails the test for what must not have happened in the document.
func (b tab) clean(where string) {
	b.t.Helper()
	for _, bad := range eval[[]string](b, `window.bad`) {
		b.t.Errorf("%s: %s", where, bad)
	}
}

// forced is the theme of a system that takes its own colours for everything.
const forced = "forced"

// size sets the width of the window, and the theme of the system, and waits until it shows.
// Nothing moves: what is on its way from one colour to the other has neither.
func (b tab) size(width int64, theme string) {
	b.t.Helper()
	do(b, chromedp.EmulateViewport(width, 900))
	media := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if theme == forced {
		media[0] = &emulation.MediaFeature{Name: "forced-colors", Value: "active"}
	}
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: media})
	b.until(`document.getAnimations().length === 0`)
	eval[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// enter opens the page at an address and logs somebody in by its form.
func (b tab) enter(address, name string) {
	b.t.Helper()
	do(b, chromedp.Navigate(address+"/ui/"))
	b.until(`document.querySelector("#key") !== null`)
	do(b, chromedp.SendKeys("#key", keyOf(name)+"\r"))
	const in, leaderless = `document.querySelector("#key") === null && document.querySelector("h1") !== null`, `document.querySelector("dialog[open] [role=alert]")?.innerText.includes("no leader")`
	for b.until(in + " || " + leaderless); !eval[bool](b, in); b.until(in + " || " + leaderless) {
		do(b, chromedp.SendKeys("#key", "\r")) // on a busy machine there is none for a moment
	}
}

// goTo goes to a view and waits until it shows what it loaded.
func (b tab) goTo(hash string) {
	b.t.Helper()
	eval[bool](b, `import(new URL("store.js", document.querySelector("script[type=module]").src)).then(({ state }) => {
		window.store = { state, from: location.hash === `+quote("#"+hash)+` ? null : state.place };
		location.hash = `+quote(hash)+`;
		return true;
	})`)
	b.until(`store.state.place !== store.from && (store.state.view.data || store.state.view.error) && document.querySelector("main h1") !== null && document.querySelector(".skeleton, [aria-busy=true]") === null`)
}

// says waits until the page says something.
func (b tab) says(text string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + quote(text) + `)`)
}

// press presses keys, one after the other: texts, or names of chromedp's kb. What the page
// does with a key itself is not typed, as with a keyboard.
func (b tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range strings.Join(keys, "") {
		events := kb.Encode(k)
		down, up := *events[0], *events[len(events)-1]
		if len(events) > 2 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		send(b, input.DispatchKeyEvent, down)
		send(b, input.DispatchKeyEvent, up)
	}
}

// tabTo presses Tab until something is focused whose text or name begins so.
func (b tab) tabTo(text string) {
	b.t.Helper()
	const most = 40
	var passed []string
	for range most {
		b.press(kb.Tab)
		at := eval[string](b, `(document.activeElement.getAttribute("aria-label") ?? document.activeElement.innerText ?? "").trim()`)
		if strings.HasPrefix(at, text) {
			return
		}
		passed = append(passed, at)
	}
	b.t.Fatalf("Tab does not lead to %q, but to %q", text, passed)
}

// quote returns a text as JavaScript has it.
func quote(text string) string {
	b, _ := json.Marshal(text) // a text always can be
	return string(b)
}
