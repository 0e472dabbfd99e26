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

// patience bounds the waits of tests for the page, because a machine may be busy.
const patience = 60 * time.Second

// pollPause is the interval between looks at a tab. With the default, at each frame, it
// would paint all the time.
const pollPause = 20 * time.Millisecond

// watcher records in each document the errors that must not happen in it.
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

// launched is the browser of all tests, Chromium without its window: painting the tool bar
// costs more than the page. The first test that needs it starts it.
var launched struct {
	once sync.Once
	ctx  context.Context
	stop context.CancelFunc // waits until it has ended
	dir  string             // its profile
	err  error
}

// launch starts the browser. For the browser, claimq.test is this machine, but not a
// loopback address.
func launch() {
	if launched.dir, launched.err = os.MkdirTemp("", "claimq-browser-"); launched.err != nil {
		return
	}
	// Root has no sandbox. The other flags keep it from calling home.
	alloc, _ := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath("/usr/bin/chromium-headless-shell"), chromedp.NoSandbox, chromedp.UserDataDir(launched.dir),
		chromedp.Flag("headless", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("host-resolver-rules", "MAP claimq.test 127.0.0.1"))
	launched.ctx, launched.stop = chromedp.NewContext(alloc)
	_, launched.err = chromedp.Run(launched.ctx, chromedp.Navigate("about:blank"))
}

// quit ends the browser if it was started.
func quit() {
	if launched.stop != nil {
		launched.stop()
	}
	if launched.dir != "" {
		_ = os.RemoveAll(launched.dir) // a folder for temporary files
	}
}

// open opens a tab of a new user of the browser, with separate cookies and storage.
func open(t testing.TB) tab {
	t.Helper()
	launched.once.Do(launch)
	if launched.err != nil {
		t.Fatal(launched.err)
	}
	return tab{t, launched.ctx}.another(chromedp.WithNewBrowserContext())
}

// another opens another tab of the same user.
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

// do runs an action in the tab.
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

// until waits until an expression is true, even if the page reloads meanwhile.
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

// clean fails the test if the watcher recorded an error in the document.
func (b tab) clean(where string) {
	b.t.Helper()
	for _, bad := range eval[[]string](b, `window.bad`) {
		b.t.Errorf("%s: %s", where, bad)
	}
}

// forced is the theme of a system that overrides all colours.
const forced = "forced"

// size sets the width of the window and the theme of the system, and waits until they show.
// Animations are off, because a colour that is still changing belongs to neither theme.
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

// enter opens the page at an address and logs a user in with its form.
func (b tab) enter(address, name string) {
	b.t.Helper()
	do(b, chromedp.Navigate(address+"/ui/"))
	b.until(`document.querySelector("#key") !== null`)
	do(b, chromedp.SendKeys("#key", keyOf(name)+"\r"))
	const in, leaderless = `document.querySelector("#key") === null && document.querySelector("h1") !== null`, `document.querySelector("dialog[open] [role=alert]")?.innerText.includes("no leader")`
	for b.until(in + " || " + leaderless); !eval[bool](b, in); b.until(in + " || " + leaderless) {
		do(b, chromedp.SendKeys("#key", "\r")) // a busy machine may have no button for a moment
	}
}

// goTo opens a view and waits until it shows its data.
func (b tab) goTo(hash string) {
	b.t.Helper()
	eval[bool](b, `import(new URL("store.js", document.querySelector("script[type=module]").src)).then(({ state }) => {
		window.store = { state, from: location.hash === `+quote("#"+hash)+` ? null : state.place };
		location.hash = `+quote(hash)+`;
		return true;
	})`)
	b.until(`store.state.place !== store.from && (store.state.view.data || store.state.view.error) && document.querySelector("main h1") !== null && document.querySelector(".skeleton, [aria-busy=true]") === null`)
}

// says waits until the page contains the text.
func (b tab) says(text string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + quote(text) + `)`)
}

// press presses keys, one after the other: texts, or names of chromedp's kb. As with a real
// keyboard, keys that the page handles are not typed.
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

// tabTo presses Tab until an element with that beginning of its text or name has the focus.
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

// quote returns a text as a JavaScript literal.
func quote(text string) string {
	b, _ := json.Marshal(text) // a text cannot fail
	return string(b)
}
