package browser

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/claimq/claimq/jepsen/procs"
)

// patience bounds how long a test waits for the page: a machine may be busy.
const patience = 60 * time.Second

const keyText = "claimq_the-key-of-an-operator"

// cluster starts three nodes with one operator's key and the page that is here.
func cluster(t *testing.T) *procs.Cluster {
	t.Helper()
	// The go command is to see the files that the binary is made of: else it would keep the
	// result of this test over a change of the page.
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "../libraries", "--need").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	binary, err := procs.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(keyText))
	keys := filepath.Join(dir, "keys.yaml")
	text := fmt.Sprintf("keys:\n  - name: ops\n    role: operator\n    rate_limit_per_minute: 0\n    key_sha256: %s\n", hex.EncodeToString(sum[:]))
	if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := procs.Start(t.Context(), procs.Config{Binary: binary, Dir: dir, Nodes: 3, Flags: []string{"--keys-file", keys}, APIKey: keyText})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// call makes a call of the API as a program does, and fails the test unless it succeeds.
func call(t *testing.T, n *procs.Node, method, target, body string) []byte {
	t.Helper()
	answer, status := try(t, n, method, target, body)
	if status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, target, status, answer)
	}
	return answer
}

// try makes a call of the API as a program does.
func try(t *testing.T, n *procs.Node, method, target, body string) (_ []byte, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, n.URL()+target, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", keyText)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return answer.Bytes(), resp.StatusCode
}

// watcher notes in each document what must not happen in it.
const watcher = `window.bad = [];
addEventListener("securitypolicyviolation", (e) => bad.push("CSP: " + e.violatedDirective + " " + e.blockedURI));
addEventListener("error", (e) => bad.push("error: " + e.message));
addEventListener("unhandledrejection", (e) => bad.push("rejection: " + e.reason));
for (const name of ["error", "warn"]) { const old = console[name]; console[name] = (...a) => { bad.push(name + ": " + a.join(" ")); old.apply(console, a); }; }`

// tab is a tab of the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open starts a browser, with a profile of its own, and returns its tab.
func open(t *testing.T) tab {
	t.Helper()
	// As root there is no sandbox. The rest keeps it from calling home.
	alloc, stop := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath("/usr/bin/chromium"), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("headless", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true))
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(func() { end(); stop() })
	b := tab{t, ctx}
	do(b, chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher})
		return err
	}))
	return b
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

// until waits until an expression is true.
func (b tab) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		b.t.Fatalf("%s: %v; the page is\n%.2000s", expression, err, eval[string](b, `document.body.innerText`))
	}
}

// clean fails the test for what must not have happened in the document.
func (b tab) clean(where string) {
	b.t.Helper()
	for _, bad := range eval[[]string](b, `window.bad`) {
		b.t.Errorf("%s: %s", where, bad)
	}
}

// size sets the width of the window, and the theme of the system, and waits until it shows.
// Nothing moves: what is on its way from one colour to the other has neither.
func (b tab) size(width int64, theme string) {
	b.t.Helper()
	do(b, chromedp.EmulateViewport(width, 900))
	do(b, chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
	b.until(`document.getAnimations().length === 0`)
	eval[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// enter opens the page of a node and logs in by its form.
func (b tab) enter(n *procs.Node) {
	b.t.Helper()
	do(b, chromedp.Navigate(n.URL()+"/ui/"))
	b.until(`document.querySelector("#key") !== null`)
	do(b, chromedp.SendKeys("#key", keyText+"\r"))
	b.until(`document.querySelector("#key") === null && document.querySelector("h1") !== null`)
}

// goTo goes to a view and waits until it shows what it loaded.
func (b tab) goTo(hash string) {
	b.t.Helper()
	eval[string](b, `location.hash = `+quote(hash))
	b.until(`document.querySelector("main h1") !== null && document.querySelector(".skeleton, [aria-busy=true]") === null`)
}

// quote returns a text as JavaScript has it.
func quote(text string) string {
	b, _ := json.Marshal(text) // a text always can be
	return string(b)
}
