package browser

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// enabledActs lists the enabled buttons of the page that change something.
const enabledActs = `[...document.querySelectorAll("button")].filter((b) => !b.disabled).map((b) => b.innerText.trim()).filter((text) =>
	/^(Submit|Retry|Delete|Cancel|Change|Pause|Resume|Take|New schedule|Add a member|Act|Read them again|Save a backup|Write snapshots|Raise|Compare|Count)/.test(text)).join(", ")`

// Each role is offered exactly what it may do: other buttons are disabled and say which
// role they need, and views that it may not see are not in the menu.
func TestRoles(t *testing.T) {
	n := cluster(t).Nodes[0]
	call(t, n, "PUT", "/api/schedules/weekly", `{"cron":"0 3 * * 1","task":{"task_type":"mail","params":1}}`)
	id := failedTask(t, n, "mail", "no such host")
	views := []string{"/types/mail", fmt.Sprintf("/tasks/%d", id), "/tasks?type=mail&status=failed", "/failures?type=mail", "/schedules/weekly"}
	const menu = `[...document.querySelectorAll("nav[aria-label=Views] a")].map((a) => a.innerText).join(" ")`
	for _, c := range []struct {
		name, menu, needs string
		acts              []string // of each view
	}{
		{"reads", "Overview Tasks Types Failures Workers Schedules Trail", "producer", []string{"", "", "", "", ""}},
		{"works", "Overview Tasks Types Failures Workers Schedules Trail", "producer", []string{"", "", "", "", ""}},
		{"makes", "Overview Tasks Types Failures Workers Schedules Trail", "operator", []string{
			"Submit a task, Retry…, Delete…", "Submit a task, Retry, Submit another like this, Delete", "Submit a task, Count, Retry all…, Delete all…", "Submit a task, Retry…, Delete…", "Submit a task, Submit now",
		}},
		{"mails", "Overview Tasks Types Failures Schedules Trail", "operator", []string{
			"Submit a task, Retry…, Delete…", "Submit a task, Retry, Submit another like this, Delete", "Submit a task, Count, Retry all…, Delete all…", "Submit a task, Retry…, Delete…", "Submit a task, Submit now",
		}},
		{"ops", "Overview Tasks Types Failures Workers Schedules Trail Cluster", "", []string{
			"Submit a task, Pause, Retry…, Delete…, Change", "Submit a task, Retry, Submit another like this, Delete", "Submit a task, Count, Retry all…, Delete all…", "Submit a task, Retry…, Delete…", "Submit a task, Submit now, Pause, Change, Delete",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t)
			b.enter(n.URL(), c.name)
			if got := eval[string](b, menu); got != c.menu {
				t.Errorf("the menu is %q, want %q", got, c.menu)
			}
			for i, view := range views {
				b.goTo(view)
				b.until(`document.querySelector(".banners").innerText === ""`) // a busy machine may have no leader for a moment
				if got := eval[string](b, enabledActs); got != c.acts[i] {
					t.Errorf("%s offers %q, want %q", view, got, c.acts[i])
				}
				for _, why := range eval[[]string](b, `[...document.querySelectorAll("main button:disabled")].map((b) => b.title)`) {
					if c.needs == "" || !strings.HasSuffix(why, "it needs the role "+c.needs+".") && !strings.HasSuffix(why, "it needs the role operator.") {
						t.Errorf("%s: a button is disabled by %q", view, why)
					}
				}
			}
			b.goTo("/cluster")
			if refused := eval[bool](b, `document.querySelector("main [role=alert]")?.innerText.includes("operator") ?? false`); refused == (c.name == "ops") {
				t.Errorf("the cluster: %s", eval[string](b, `document.querySelector("main").innerText`))
			}
			b.clean(c.name)
		})
	}
	t.Run("nobody", func(t *testing.T) {
		b := open(t)
		do(b, navigate(n.URL()+"/ui/#/types/mail"))
		b.until(`document.querySelector("#key") !== null`)
		b.press("claimq_a-key-that-is-none\r")
		b.until(`document.querySelector("dialog[open] [role=alert]") !== null`)
		if told := eval[string](b, `document.querySelector("main").innerText`); strings.Contains(told, "no such host") || strings.Contains(told, "Pending") {
			t.Errorf("it shows %s", told)
		}
		b.clean("nobody")
	})
}

// On a node with ui.read_only an operator's page cannot change anything, and says so.
func TestReadOnly(t *testing.T) {
	n := follower(t)
	restart(t, n, "--ui-read-only")
	call(t, n, "PUT", "/api/schedules/weekly", `{"cron":"0 3 * * 1","task":{"task_type":"mail","params":1}}`)
	b := open(t)
	b.enter(n.URL(), "ops")
	b.goTo("/schedules/weekly")
	if got := eval[string](b, enabledActs); got != "" {
		t.Errorf("it offers %q", got)
	}
	why := eval[[]string](b, `[...document.querySelectorAll("main button:disabled")].map((b) => b.title)`)
	if len(why) == 0 || slices.ContainsFunc(why, func(s string) bool { return s != "This page is read-only." }) {
		t.Errorf("buttons are disabled by %q", why)
	}
	status := eval[int](b, `fetch("../api/tasks", {method: "POST", headers: {"X-Claimq-Page": localStorage.getItem("claimq.n"), "Content-Type": "application/json"}, body: '{"task_type":"mail","params":1}'}).then((r) => r.status)`)
	if status != http.StatusForbidden {
		t.Errorf("a submit by its cookie is answered %d", status)
	}
}
