package browser

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// A new user, on a phone and with common keys: a cluster without keys whose leader is killed,
// a failing type and its reason, a retry of its tasks after a count, and the reason why
// another type's task waits. All of it can be found by reading the page.
func TestWalk(t *testing.T) {
	nodes, dir, err := start(false)
	t.Cleanup(func() {
		if nodes != nil {
			nodes.Close()
		}
		if dir != "" {
			_ = os.RemoveAll(dir) // a folder for temporary files
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	leader, err := nodes.WaitLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := nodes.Nodes[0]
	if n == leader {
		n = nodes.Nodes[1]
	}
	call(t, n, "PATCH", "/api/types/invoice", `{"paused":true}`)
	call(t, n, "POST", "/api/tasks", `{"task_type":"invoice","params":1}`)

	const width = 360
	b := open(t)
	do(b, navigate(n.URL()+"/ui/"))
	b.says("3 of 3")
	b.size(width, "light")
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	b.says("2 of 3")
	next, err := nodes.WaitLeader(t.Context(), leader)
	if err != nil {
		t.Fatal(err)
	}
	b.leads(next)
	b.until(`document.querySelector(".banners").innerText === ""`)
	const many = 7
	for range many {
		failedTask(t, next, "mail", "dial tcp 10.0.0.7: connection refused\nand a second line")
	}

	b.says(fmt.Sprintf("mail %d tasks failed for good in the last minute", many))
	b.tabTo("mail")
	b.press(kb.Enter)
	b.until(`document.querySelector("h1").innerText === "Failed tasks" && document.querySelector("[data-row]") !== null`)
	b.tabTo(eval[string](b, `document.querySelector("[data-row]").innerText`))
	b.press(kb.Enter)
	b.says("Why it failed")
	b.says("and a second line")

	b.menu("Failures")
	b.says("connection refused")
	b.tabTo("Retry…")
	b.press(kb.Enter)
	b.says(fmt.Sprintf("Retry %d tasks", many))
	b.tabTo(fmt.Sprintf("Retry %d", many))
	b.press(kb.Enter)
	b.says(fmt.Sprintf("%d tasks retried", many))
	b.tabTo("Close")
	b.press(kb.Enter)
	b.until(`document.querySelector("dialog[open]") === null`)
	b.says("Nothing has failed")

	b.menu("Overview")
	b.says("is paused; 1 task waiting")
	b.tabTo("invoice")
	b.press(kb.Enter)
	b.until(`/Why its first, task \d+, is not running\s+The type invoice is paused/.test(document.querySelector("main").innerText)`)
	if over := eval[int](b, `document.documentElement.scrollWidth`); over > width {
		t.Errorf("it is %d px wide", over)
	}
	b.clean("the walk")
}

// menu opens a view with the menu of a small screen.
func (b tab) menu(name string) {
	b.t.Helper()
	eval[bool](b, `(scrollTo(0, 0), document.activeElement.blur(), true)`)
	b.tabTo("Menu")
	b.press(kb.Enter)
	b.tabTo(name)
	b.press(kb.Enter)
	b.until(`document.querySelector("h1").innerText === ` + quote(name))
}
