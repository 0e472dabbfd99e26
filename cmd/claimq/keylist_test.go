package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/operate"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// runWith runs a command with an operator's key.
func runWith(t *testing.T, key string, endpoint string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	a := &term.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Environ: []string{"CLAIMQ_API_KEY=" + key, "CLAIMQ_ENDPOINTS=" + endpoint}}
	code = run(t.Context(), a, args)
	return code, stdout.String(), stderr.String()
}

// key list shows the keys of all nodes, whichever node gets the command. It names a node that it cannot ask.
func TestKeyList(t *testing.T) {
	t.Parallel()
	ops := generate(t, "--role", "operator", "--name", "ops", "--rate", "0")
	app := generate(t, "--role", "producer", "--role", "worker", "--name", "app", "--type", "mail", "--address", "127.0.0.0/8", "--expires-at", "2999-01-31T12:00:00Z")
	idle := generate(t, "--role", "reader", "--name", "idle")
	c := startKeyed(t, ops, app, idle)
	if status, answer, err := c.settled("POST", c.nodes[1].URL()+"/api/tasks", app.Key, `{"task_type":"mail","params":1}`); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	var list operate.ListedKeys
	c.eventually("list of all nodes", func() bool { // a busy machine may change leaders
		code, out, _ := runWith(t, ops.Key, c.nodes[0].URL(), "key", "list", "--output", "json")
		list = operate.ListedKeys{}
		return code == term.ExitDone && json.Unmarshal([]byte(out), &list) == nil
	})
	if len(list.Nodes) != 3 || len(list.Keys) != 3 || list.Keys[0].Name != "app" || list.Keys[1].Name != "idle" || list.Keys[2].Name != "ops" {
		t.Fatalf("%+v", list)
	}
	k := list.Keys[0]
	if k.LastUsedAt == nil || time.Since(*k.LastUsedAt) > 2*claimqtest.Patience || k.LastUsedFrom == nil || *k.LastUsedFrom != "127.0.0.1" || len(k.Nodes) != 3 || k.Differs ||
		strings.Join(k.Roles, " ") != "producer worker" || strings.Join(k.Addresses, " ") != "127.0.0.0/8" || k.ExpiresAt.Year() != 2999 || k.RateLimitPerMinute != 0 {
		t.Errorf("%+v", k)
	}
	code, out, errs := runWith(t, ops.Key, c.nodes[2].URL(), "key", "list")
	if code != term.ExitDone {
		t.Fatalf("%d %s", code, errs)
	}
	for _, want := range []string{"producer,worker", "mail", "2999-01-31 12:00:00", "127.0.0.0/8", "LAST USED -: not since 20"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	for _, k := range []operate.GeneratedKey{ops, app, idle} {
		if strings.Contains(out, k.Key) || strings.Contains(out, k.SHA256[:8]) {
			t.Errorf("it shows the key %s or its hash:\n%s", k.Name, out)
		}
	}
	if code, _, errs := runWith(t, idle.Key, c.nodes[0].URL(), "key", "list"); code != term.ExitRefused || !strings.Contains(errs, "operator") {
		t.Errorf("with a reader's key: %d %s", code, errs)
	}
	// The keys of this node differ, and then it is stopped.
	idle.Role = "worker"
	c.nodes[1].setKeys(t, ops, idle)
	if status, answer, err := ask(t.Context(), "POST", c.nodes[1].URL()+"/api/reload", ops.Key, ""); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	c.eventually("difference", func() bool {
		_, out, _ := runWith(t, ops.Key, c.nodes[0].URL(), "key", "list")
		return strings.Contains(out, "n1,n2,n3 (they differ)") && strings.Contains(out, "n1,n3")
	})
	gone := c.nodes[1]
	c.ends(gone.Node)
	c.nodes = []*keyedNode{c.nodes[0], c.nodes[2]}
	c.eventually("list without a node", func() bool {
		code, out, errs := runWith(t, ops.Key, c.nodes[0].URL(), "key", "list", "--timeout", "1s")
		return code != term.ExitDone && strings.Contains(errs, "node n2 at http://") && strings.Contains(errs, "no node answered at "+gone.URL()+"\n") && strings.Contains(out, "app ")
	})
}
