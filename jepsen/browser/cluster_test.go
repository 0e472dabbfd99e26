package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/internal/procs"
	"github.com/claimq/claimq/internal/testwait"
)

// On a follower's page, a half-filled form does not change while the leader is killed and
// another one is elected, and is then sent to that one.
func TestLeaderKilled(t *testing.T) {
	nodes, n := cluster(t), follower(t)
	leader, err := nodes.WaitLeader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := open(t)
	b.enter(n.URL(), "ops")
	b.until(`document.querySelector("#foot").innerText.includes(` + quote(n.ID+", version") + `)`)
	b.leads(leader)
	b.press("n")
	b.until(`document.querySelector("dialog[open] input") !== null`)
	do(b, chromedp.SendKeys("dialog[open] input", "mail"))
	kill(t, leader)
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
	b.press(kb.Enter)
	b.until(`document.querySelector("dialog[open]") === null`)
	b.until(`/^Task \d+ submitted/.test(document.querySelector(".toast")?.innerText ?? "")`)
	b.goTo("/types")
	b.says("after")
	b.goTo("/cluster")
	b.until(`/Leader changes\s+` + next.ID + `\s+term \d+, seen [^]+` + leader.ID + `\s+term \d+, led already/.test(document.querySelector("main").innerText)`)
	b.clean("the page of a follower")
}

// leads waits until the overview shows that the node leads.
func (b tab) leads(n *procs.Node) {
	b.t.Helper()
	b.until(`[...document.querySelectorAll(".stat")].some((e) => e.innerText.startsWith("Leader\n` + n.ID + `"))`)
}

// With two of three nodes gone the page says that nothing can be changed, and whose state it
// shows, as of when. It offers no changes, and recovers by itself when there is a leader
// again.
func TestNoQuorum(t *testing.T) {
	nodes := cluster(t)
	n := nodes.Nodes[0]
	call(t, n, "POST", "/api/tasks", `{"task_type":"kept","params":1}`)
	b := open(t)
	b.enter(n.URL(), "ops")
	b.goTo("/types/kept")
	b.says("Pause")
	b.press("n")
	b.until(`document.querySelector("dialog[open] input") !== null`)
	kill(t, nodes.Nodes[1])
	kill(t, nodes.Nodes[2])
	b.until(`/No leader since .*\. This is n1's own state as of index [\d,]+\. Nothing can be changed\./.test(document.querySelector(".banners").innerText)`)
	b.until(`document.querySelector("dialog[open]").innerText.includes("There is no leader: nothing can be changed until there is one.")`)
	b.press(kb.Escape)
	b.goTo("/types")
	b.says("kept")
	b.goTo("/types/kept")
	if enabled := eval[string](b, enabledActs); enabled != "" {
		t.Errorf("it offers %s", enabled)
	}
	b.press("n")
	b.says("Nothing can be changed while there is no leader.")
	again(t, nodes.Nodes[1])
	again(t, nodes.Nodes[2])
	b.until(`document.querySelector(".banners").innerText === ""`)
	b.until(enabledActs + `.includes("Pause")`)
	b.clean("the page without a quorum")
}

// A node that is behind answers that it is not ready, with the code of a cluster without a
// leader. The page shows the node's text. It only says that there is no leader after a call of
// the API has found none, and until a call succeeds, even if the user does nothing.
func TestNoLeader(t *testing.T) {
	const behind, leaderless = "this node is catching up", "The cluster has no leader"
	refusal := func(text string) string { return `{"success":false,"code":"no_leader","error":` + quote(text) + `}` }
	d := openDoor(t, cluster(t).Nodes[0], "")
	b := open(t)
	b.enter(d.URL, "ops")
	d.set(func() { d.refused = map[string]string{"/readyz": refusal(behind)} })
	b.goTo("/types")
	b.goTo("/")
	b.until(`document.querySelector(".banners").innerText === ` + quote(behind))
	b.press(".")
	d.set(func() { d.refused = map[string]string{"/api/types": refusal(leaderless), "/readyz": refusal(behind)} })
	b.press("r")
	b.until(`document.querySelector(".banners").innerText.startsWith("No leader since")`)
	d.set(func() { d.refused = nil })
	b.until(`document.querySelector(".banners").innerText === ""`)
}

// Every view shows how far the node is behind, until it has caught up.
func TestBehind(t *testing.T) {
	d := openDoor(t, cluster(t).Nodes[0], "")
	b := open(t)
	b.enter(d.URL, "ops")
	d.set(func() {
		d.refused = map[string]string{"/readyz": `{"success":false,"code":"no_leader","error":"The node is not ready: this node is catching up: it has applied 880 of 5000 log entries"}`}
	})
	b.goTo("/types")
	b.says("This node is 4,120 entries behind.")
	b.goTo("/tasks")
	b.says("This node is 4,120 entries behind.")
	d.set(func() { d.refused = nil })
	b.press("r")
	b.until(`document.querySelector(".banners").innerText === ""`)
	b.clean("a node that is behind")
}

// An operator's overview shows the memory of the leader's state and the free space of the
// fullest disk, and warns at the top if there is no room.
func TestRoom(t *testing.T) {
	n := cluster(t).Nodes[0]
	call(t, n, "POST", "/api/tasks", `{"task_type":"mail","params":1}`)
	d := openDoor(t, n, "")
	b := open(t)
	b.enter(d.URL, "ops")
	const tile = `[...document.querySelectorAll(".stat")].find((e) => e.innerText.startsWith(%q))`
	memory, disk := fmt.Sprintf(tile, "Memory\n"), fmt.Sprintf(tile, "Disk free\n")
	b.until(`/^Memory\n[\d.]+ [KM]iB\nof [\d.]+ GiB$/.test(` + memory + `?.innerText)`)
	b.until(`/^Disk free\n[\d.]+ [MG]iB\nwhere it is least$/.test(` + disk + `?.innerText) && ` + disk + `.dataset.tone === ""`)
	var told wire.Cluster
	if err := json.Unmarshal(call(t, n, "GET", "/api/cluster", ""), &told); err != nil {
		t.Fatal(err)
	}
	say := func(change func(*wire.Room)) {
		for i := range told.Nodes {
			change(told.Nodes[i].Room)
		}
		body, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		d.set(func() { d.said = map[string]string{"/api/cluster": string(body)} })
		b.press("r")
	}
	say(func(r *wire.Room) { r.StateBytes, r.StateLimitBytes = 95<<20, 100<<20 })
	b.says("Memory is nearly full; tasks take 95 MiB of 100 MiB")
	say(func(r *wire.Room) { r.StateBytes, r.DiskFreeBytes = 101<<20, r.DiskFreeMinBytes-1 })
	b.says("Memory is full: submits are refused; tasks take 101 MiB of 100 MiB")
	b.until(memory + `.dataset.tone === "bad" && ` + disk + `.dataset.tone === "bad"`)
	b.clean("the overview without room")
}

// A page that is older than its node, behind a proxy under another path, says that there
// is a newer one, and keeps working until the user reloads it.
func TestOlderPage(t *testing.T) {
	d := openDoor(t, cluster(t).Nodes[0], "/queue")
	b := open(t)
	b.enter(d.URL, "ops")
	b.goTo("/types")
	if eval[bool](b, `document.body.innerText.includes("newer page")`) {
		t.Fatal("it says so of the page that it is")
	}
	d.set(func() { d.page = "0123456789abcdef" })
	b.says("A newer page is there.")
	b.goTo("/schedules")
	b.goTo("/tasks")
	d.set(func() { d.page = "" })
	b.tabTo("Reload")
	b.press(kb.Enter)
	b.until(`document.querySelector("h1") !== null && !document.body.innerText.includes("newer page")`)
	b.clean("an older page")
}
