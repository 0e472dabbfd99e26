package browser

import (
	"fmt"
	"testing"

	"github.com/claimq/claimq/internal/testwait"
)

// badge reads the number next to the trail in the menu.
const badge = `(document.querySelector(".badge")?.innerText.trim() ?? "")`

// Events that matter are counted in the menu and in the tab's title until the trail is looked
// at; others are not.
func TestBadge(t *testing.T) {
	n := cluster(t).Nodes[0]
	d := openDoor(t, n, "")
	b := open(t)
	b.enter(d.URL, "ops")
	testwait.Until(t, "the page follows", func() bool { return d.answering("/api/events") == 1 })
	call(t, n, "POST", "/api/tasks", `{"task_type":"mail","params":1}`)
	failedTask(t, n, "badge", "no such host")
	b.until(`/^1\s+notable$/.test(` + badge + `)`)
	b.until(`document.title === "(1) Overview · claimq"`)
	b.goTo("/types")
	call(t, n, "PATCH", "/api/types/badge", `{"paused":true}`)
	b.until(`document.title === "(2) Types · claimq"`)
	b.goTo("/trail")
	b.until(badge + ` === "" && document.title === "Trail · claimq"`)
	b.goTo("/tasks")
	b.until(`document.title === "Tasks · claimq"`)
	const full, enough = `document.title.startsWith("(99) ")`, 1000
	for i := 0; !eval[bool](b, full) && i < enough; i++ {
		call(t, n, "PATCH", "/api/types/badge", fmt.Sprintf(`{"paused":%v}`, i%2 == 1))
	}
	b.until(full + ` && ` + badge + `.startsWith("99+")`)
	testwait.Until(t, "it follows no more", func() bool { return d.answering("/api/events") == 0 })
	b.clean("the badge")
}

// A key limited to some types may not see all events: the page follows and counts none.
func TestBadge_ofTypes(t *testing.T) {
	n := cluster(t).Nodes[0]
	d := openDoor(t, n, "")
	b := open(t)
	b.enter(d.URL, "mails")
	b.goTo("/schedules")
	failedTask(t, n, "mail", "no such host")
	b.goTo("/failures?type=mail")
	b.says("no such host")
	if asked := d.count("/api/events"); asked != 0 || eval[bool](b, badge+` !== ""`) {
		t.Errorf("it has asked %d times for events", asked)
	}
	b.clean("the page of a key of some types")
}
