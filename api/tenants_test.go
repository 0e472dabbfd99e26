package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/api/wire"
)

// mark is in everything that others have named, sent or written in the state of tenants, and a key for the types a
// and b must never see it. JSON does not escape it.
const mark = "m4rk"

// othersDay is the calendar day on which others' tasks end.
const othersDay = int64(nodetest.Start + 100*86_400_000)

// tenants fills the state with tasks of the types m4rk and a, and with families of both. It returns the ids of tasks
// by name.
func tenants(t *testing.T, s *Server, node *nodetest.Node) map[string]uint64 {
	t.Helper()
	root := func(target, body string) answer {
		t.Helper()
		got := s.call(t, target, body, with("root"))
		if got.status >= 300 {
			t.Fatalf("%s %s: %d %s", target, body, got.status, got.body)
		}
		return got
	}
	ids := make(map[string]uint64)
	submit := func(name, body string) {
		t.Helper()
		ids[name] = root("POST /api/tasks", body).good(t, 201).Task.ID
	}
	settle := func(id uint64, how, rest string) {
		t.Helper()
		root(fmt.Sprintf("POST /api/tasks/%d/claim", id), `{"worker_id":"m4rk-worker"}`)
		root(fmt.Sprintf("POST /api/tasks/%d/%s", id, how), `{"worker_id":"m4rk-worker"`+rest+`}`)
	}
	act := func(name, how, body string) {
		t.Helper()
		root(fmt.Sprintf("POST /api/tasks/%d/%s", ids[name], how), body)
	}
	const whole = `"params":"m4rk-params","labels":{"m4rk-label":"m4rk-value"}`
	own := func(name string) string {
		return `{"task_type":"a","params":"own","idempotency_key":"k-` + name + `"`
	}

	submit("first", own("first")+`}`)
	node.Advance(othersDay - nodetest.Start)
	for i := range 20 {
		submit("other "+strconv.Itoa(i), fmt.Sprintf(`{"task_type":"m4rk","params":1,"idempotency_key":"m4rk-%d"}`, i))
	}
	submit("other", `{"task_type":"m4rk","idempotency_key":"m4rk-key","group":"m4rk-group",`+whole+`}`)
	submit("other held", `{"task_type":"m4rk",`+whole+`}`)
	act("other held", "claim", `{"worker_id":"m4rk-worker"}`)
	for i := range 3 {
		name := "other failed " + strconv.Itoa(i)
		submit(name, `{"task_type":"m4rk",`+whole+`}`)
		settle(ids[name], "fail", `,"error":"m4rk-error","permanent":true`)
		node.Advance(1)
	}
	submit("other done", `{"task_type":"m4rk","payload":"`+base64.StdEncoding.EncodeToString([]byte("m4rk-payload"))+`"}`)
	settle(ids["other done"], "complete", `,"result":"m4rk-result"`)
	root("PATCH /api/types/m4rk", `{"max_claimed":424242,"rate_limit":424242}`)
	root("PUT /api/types/m4rk/shares/m4rk-share", `{"paused":true,"max_claimed":424242}`)
	root("PUT /api/schedules/m4rk-schedule", `{"task":{"task_type":"m4rk",`+whole+`},"every_ms":86400000}`)
	node.Advance(86_400_000)

	// Families of both types: parents of our type with others' steps, and the other way round.
	parent := func(name, rest string) {
		t.Helper()
		submit(name, own(name)+rest+`,"steps":[{"step":"m4rk-step","task_type":"m4rk","params":"m4rk-params","max_attempts":1}]}`)
	}
	for _, name := range []string{"parent failed", "parent gone"} {
		parent(name, "")
		settle(ids[name]+1, "fail", `,"error":"m4rk-error","permanent":true`)
	}
	parent("parent done", "")
	settle(ids["parent done"]+1, "complete", `,"result":"m4rk-result"`)
	parent("parent running", "")
	for _, name := range []string{"parent finalized", "parent finalizing"} {
		parent(name, `,"finalize":"claim"`)
		settle(ids[name]+1, "complete", `,"result":"m4rk-result"`)
		act(name, "finalization/claim", `{"processor_id":"m4rk-processor"}`)
	}
	act("parent finalized", "finalize", `{"processor_id":"m4rk-processor","outcome":"failed","error":"m4rk-error"}`)
	root(fmt.Sprintf("DELETE /api/tasks/%d", ids["parent gone"]), "")
	submit("other parent", `{"task_type":"m4rk","idempotency_key":"m4rk-parent","on_step_failure":"continue","steps":[`+
		`{"step":"m4rk-before","task_type":"m4rk","params":1},{"step":"free","task_type":"a","params":"own"},`+
		`{"step":"behind","task_type":"a","params":"own","depends_on":["m4rk-before","free"]},`+
		`{"step":"m4rk-broken","task_type":"m4rk","params":1},{"step":"stopped","task_type":"a","params":"own","depends_on":["m4rk-broken"]}]}`)
	ids["free step"], ids["blocked step"], ids["stopped step"] = ids["other parent"]+2, ids["other parent"]+3, ids["other parent"]+5
	settle(ids["other parent"]+4, "fail", `,"error":"m4rk-error","permanent":true`)

	submit("held", own("held")+`}`)
	act("held", "claim", `{"worker_id":"w"}`)
	submit("failed", own("failed")+`}`)
	root(fmt.Sprintf("POST /api/tasks/%d/claim", ids["failed"]), `{"worker_id":"w"}`)
	act("failed", "fail", `{"worker_id":"w","error":"own error","permanent":true}`)
	submit("chained", own("chained")+`}`)
	act("chained", "claim", `{"worker_id":"w"}`)
	act("chained", "complete", `{"worker_id":"w","submit":[{"task_type":"m4rk","params":1}],"claim":{"task_types":["m4rk"]}}`)
	submit("last", own("last")+`}`)
	root("PUT /api/schedules/own", `{"task":{"task_type":"a","params":"own"},"every_ms":86400000}`)
	return ids
}

// tenantCalls are requests for each call, as ROLE METHOD TARGET BODY, where {NAME} is the id of a task of tenants.
// They include calls that refuse every key with task_types.
var tenantCalls = map[string][]string{
	"submit_tasks": {
		`producer POST /api/tasks {"task_type":"a","params":1}`,
		`producer POST /api/tasks {"task_type":"a","params":1,"idempotency_key":"k-parent failed"}`,
		`producer POST /api/tasks {"task_type":"a","params":1,"idempotency_key":"k-parent done"}`,
		`producer POST /api/tasks {"task_type":"a","params":1,"idempotency_key":"k-parent finalized"}`,
		`producer POST /api/tasks {"task_type":"a","params":1,"idempotency_key":"k-parent gone"}`,
		`producer POST /api/tasks {"tasks":[{"task_type":"a","params":1,"idempotency_key":"k-parent failed"},{"task_type":"b","params":1,"idempotency_key":"other"}]}`,
	},
	"get_task": {
		`reader GET /api/tasks/{other}`, `reader GET /api/tasks/{parent failed}`, `reader GET /api/tasks/{parent gone}`, `reader GET /api/tasks/{blocked step}`,
		`reader GET /api/tasks/{other parent}`, `reader GET /api/tasks/{stopped step}?wait_ms=1`, `reader GET /api/tasks/{other}?wait_ms=1`, `reader HEAD /api/tasks/{other}`,
	},
	"get_task_by_key": {`reader GET /api/tasks/by-key/k-parent%20failed`, `reader GET /api/tasks/by-key/k-first?task_type=a`},
	"list_tasks": {
		`reader GET /api/tasks?task_type=a&include=params,result&limit=100`, `reader GET /api/tasks?task_type=a&order=desc&include=result&limit=2`, `reader GET /api/tasks?task_type=a&limit=1`,
		`reader GET /api/tasks?task_type=a&status=failed&order=ended&limit=1`, `reader GET /api/tasks?task_type=a&status=failed&order=ended&limit=4&include=result`,
		`reader GET /api/tasks?task_type=a&parent_id={other parent}`, `reader GET /api/tasks?task_type=a&parent_id={parent failed}`, `reader GET /api/tasks?task_type=a&consistency=stale&limit=1`,
		`reader GET /api/tasks?task_type=a&idempotency_key=k-parent%20failed`, `reader GET /api/tasks`,
	},
	"list_failures":    {`reader GET /api/failures?task_type=a`, `reader GET /api/failures?task_type=b`, `reader GET /api/failures`},
	"explain_task":     {`reader GET /api/tasks/{blocked step}/why`, `reader GET /api/tasks/{last}/why`, `reader GET /api/tasks/{parent running}/why`, `reader GET /api/tasks/{other}/why`},
	"change_task":      {`producer PATCH /api/tasks/{blocked step} {"priority":3}`, `producer PATCH /api/tasks/{parent running} {"priority":3}`, `producer PATCH /api/tasks/{other} {"priority":3}`},
	"delete_task":      {`producer DELETE /api/tasks/{other done}`, `producer DELETE /api/tasks/{parent failed}`, `producer DELETE /api/tasks/{free step}`, `producer DELETE /api/tasks/{failed}`},
	"retry_task":       {`producer POST /api/tasks/{stopped step}/retry`, `producer POST /api/tasks/{parent failed}/retry`, `producer POST /api/tasks/{other failed 0}/retry`, `producer POST /api/tasks/{failed}/retry`},
	"signal_task":      {`producer POST /api/tasks/{blocked step}/signal`, `producer POST /api/tasks/{parent running}/signal`, `producer POST /api/tasks/{other}/signal`},
	"cancel_task":      {`producer POST /api/tasks/{blocked step}/cancel`, `producer POST /api/tasks/{parent running}/cancel`, `producer POST /api/tasks/{other}/cancel`},
	"act_on_tasks":     {`producer POST /api/tasks/actions {"action":"retry","filter":{"task_type":"a"},"dry_run":true}`, `producer POST /api/tasks/actions {"action":"cancel","filter":{"task_type":"a"}}`, `producer POST /api/tasks/actions {"action":"cancel","filter":{"task_type":"a"},"expect":1}`, `producer POST /api/tasks/actions {"action":"cancel","all":true}`},
	"run_batch":        {`producer POST /api/batch {"ops":[{"op":"submit","task_type":"a","params":1,"idempotency_key":"k-parent failed"},{"op":"retry","id":{stopped step}},{"op":"cancel","id":{blocked step}}]}`, `producer POST /api/batch {"atomic":true,"ops":[{"op":"retry","id":{stopped step}}]}`, `worker POST /api/batch {"ops":[{"op":"claim","worker_id":"w2","limit":20}]}`, `worker POST /api/batch {"ops":[{"op":"extend","id":{other held},"worker_id":"w"}]}`},
	"claim_tasks":      {`worker POST /api/tasks/claim {"worker_id":"w2","limit":20}`, `worker POST /api/tasks/claim {"worker_id":"w2","wait_ms":1}`, `worker POST /api/tasks/claim {"worker_id":"w2","task_types":["b"],"wait_ms":1}`},
	"claim_task":       {`worker POST /api/tasks/{free step}/claim {"worker_id":"w2"}`, `worker POST /api/tasks/{blocked step}/claim {"worker_id":"w2"}`, `worker POST /api/tasks/{other}/claim {"worker_id":"w2"}`, `worker POST /api/tasks/{parent running}/claim {"worker_id":"w2"}`},
	"complete_task":    {`worker POST /api/tasks/{held}/complete {"worker_id":"w","submit":[{"task_type":"a","params":1,"idempotency_key":"k-parent failed"}],"claim":{"limit":9}}`, `worker POST /api/tasks/{chained}/complete {"worker_id":"w","submit":[{"task_type":"a","params":1}]}`, `worker POST /api/tasks/{other held}/complete {"worker_id":"w"}`, `worker POST /api/tasks/{parent running}/complete {"worker_id":"w"}`},
	"fail_task":        {`worker POST /api/tasks/{held}/fail {"worker_id":"w","error":"e"}`, `worker POST /api/tasks/{other held}/fail {"worker_id":"w","error":"e"}`, `worker POST /api/tasks/{stopped step}/fail {"worker_id":"w","error":"e"}`},
	"extend_task":      {`worker POST /api/tasks/{held}/extend {"worker_id":"w"}`, `worker POST /api/tasks/{other held}/extend {"worker_id":"w"}`},
	"add_steps":        {`worker POST /api/tasks/{held}/steps {"worker_id":"w","steps":[{"step":"x","task_type":"a","params":1}]}`, `worker POST /api/tasks/{other held}/steps {"worker_id":"m4rk-worker","steps":[{"step":"x","task_type":"a","params":1}]}`, `worker POST /api/tasks/{free step}/steps {"worker_id":"w","steps":[{"step":"m4rk-before","task_type":"a","params":1}]}`},
	"release_task":     {`worker POST /api/tasks/{held}/release {"worker_id":"w"}`, `worker POST /api/tasks/{other held}/release {"worker_id":"w"}`},
	"get_finalization": {`reader GET /api/tasks/{parent finalizing}/finalization`, `reader GET /api/tasks/{parent finalized}/finalization`, `reader GET /api/tasks/{first}/finalization`},
	"claim_finalization": {
		`worker POST /api/tasks/{parent finalizing}/finalization/claim {"processor_id":"p"}`,
		`worker POST /api/tasks/{other parent}/finalization/claim {"processor_id":"p"}`, `worker POST /api/tasks/{parent gone}/finalization/claim {"processor_id":"p"}`,
	},
	"extend_finalization":    {`worker POST /api/tasks/{parent finalizing}/finalization/extend {"processor_id":"p"}`},
	"release_finalization":   {`worker POST /api/tasks/{parent finalizing}/finalization/release {"processor_id":"p"}`},
	"finalize_task":          {`worker POST /api/tasks/{parent finalizing}/finalize {"processor_id":"p","outcome":"completed"}`, `worker POST /api/tasks/{parent finalized}/finalize {"processor_id":"p","outcome":"completed"}`, `worker POST /api/tasks/{parent gone}/finalize {"processor_id":"p","outcome":"completed"}`},
	"list_types":             {`reader GET /api/types`, `reader GET /api/types?limit=1`, `reader GET /api/types?name=m&order=pending&limit=1`, `reader GET /api/types?after=b&limit=1`},
	"get_type":               {`reader GET /api/types/a`, `reader GET /api/types/b`},
	"change_type":            {`operator PATCH /api/types/a {"paused":true}`},
	"list_shares":            {`reader GET /api/types/a/shares`, `reader GET /api/types/a/shares?order=pending`, `reader GET /api/types/a/shares?settings=true`},
	"set_share":              {`operator PUT /api/types/a/shares/ann {"paused":true}`},
	"delete_share":           {`operator DELETE /api/types/a/shares/ann`},
	"get_defaults":           {`reader GET /api/defaults`},
	"change_defaults":        {`operator PATCH /api/defaults {"lease_ms":5000}`},
	"list_schedules":         {`reader GET /api/schedules`, `reader GET /api/schedules?limit=1&after=m`},
	"get_schedule":           {`reader GET /api/schedules/own`},
	"list_slots":             {`reader GET /api/slots?every_ms=60000`},
	"set_schedule":           {`operator PUT /api/schedules/own {"task":{"task_type":"b","params":1},"every_ms":60000}`},
	"delete_schedule":        {`operator DELETE /api/schedules/own`},
	"follow_events":          {`reader GET /api/events?task_type=a&limit=1000`, `reader GET /api/events?task_type=a&worker_id=m4rk-processor`, `reader GET /api/events?task_type=a&after=0`, `reader GET /api/events?task_type=a&worker_id=w`, `reader GET /api/events?task_type=b&after=0`, `reader GET /api/events`},
	"list_task_events":       {`reader GET /api/tasks/{parent gone}/events`, `reader GET /api/tasks/{parent failed}/events`, `reader GET /api/tasks/{stopped step}/events`, `reader GET /api/tasks/{other}/events`},
	"list_workers":           {`reader GET /api/workers`},
	"get_history":            {`reader GET /api/history?task_type=a`, `reader GET /api/history`},
	"get_stats":              {`reader GET /api/stats`},
	"get_cluster":            {`operator GET /api/cluster`},
	"join_node":              {`operator POST /api/cluster/join {"address":"127.0.0.1:1"}`},
	"remove_node":            {`operator POST /api/cluster/remove {"node_id":"n"}`},
	"promote_node":           {`operator POST /api/cluster/promote {"node_id":"n"}`},
	"demote_node":            {`operator POST /api/cluster/demote {"node_id":"n"}`},
	"transfer_leadership":    {`operator POST /api/cluster/transfer {}`},
	"upgrade_cluster":        {`operator POST /api/cluster/upgrade {}`},
	"get_hashes":             {`operator GET /api/cluster/hash`},
	"list_join_tokens":       {`operator GET /api/cluster/tokens`},
	"set_join_token":         {`operator POST /api/cluster/tokens {}`},
	"revoke_join_token":      {`operator POST /api/cluster/tokens/revoke {}`},
	"take_snapshot":          {`operator POST /api/snapshots`},
	"save_snapshot":          {`operator GET /api/snapshots/latest`},
	"restore_snapshot":       {`operator POST /api/restore`},
	"reload_files":           {`operator POST /api/reload`},
	"list_keys":              {`operator GET /api/keys`},
	"get_health":             {`reader GET /healthz`},
	"get_readiness":          {`reader GET /readyz`},
	"get_metrics":            {`reader GET /metrics`},
	"get_openapi":            {`reader GET /openapi.json`},
	"get_root":               {`reader GET /`},
	"get_page_without_slash": {`reader GET /ui`},
	"get_page":               {`reader GET /ui/`},
	"get_session":            {`reader GET /ui/session`},
	"log_in":                 {`reader POST /ui/login {}`},
	"log_out":                {`reader POST /ui/logout {}`},
	"options":                {`reader OPTIONS /api/tasks`},
}

// othersID reports whether the id belongs to a task of another type.
func othersID(ids map[string]uint64, id uint64) bool {
	first, last := ids["first"], ids["other done"]
	return id > first && id <= last
}

// leaks returns what a text shows of others: their mark, plain or in base64, the day of their ends, and ids of their
// tasks.
func leaks(ids map[string]uint64, text string) (found []string) {
	for _, form := range marked() {
		if strings.Contains(text, form) {
			found = append(found, form)
		}
	}
	for _, number := range regexp.MustCompile(`-?\d+`).FindAllString(text, -1) {
		n, err := strconv.ParseInt(number, 10, 64)
		if err == nil && (n == 424_242 || n >= othersDay && n < othersDay+86_400_000) {
			found = append(found, number)
		}
	}
	for _, part := range regexp.MustCompile(`"(id|task_id|last_task_id|ids|task_ids)":\[?([\d,]+)`).FindAllStringSubmatch(text, -1) {
		for number := range strings.SplitSeq(part[2], ",") {
			if id, err := strconv.ParseUint(number, 10, 64); err == nil && othersID(ids, id) {
				found = append(found, part[0])
			}
		}
	}
	return found
}

// marked returns the forms in which an answer might contain the mark and the day.
func marked() []string {
	forms := []string{mark, "2026-06-09T"}
	for before := range 3 { // base64 of the mark at any offset, without the characters that its neighbors affect
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + mark + "-payload"))
		forms = append(forms, text[(before*4+2)/3:len(text)-1])
	}
	return forms
}

// cursorsOf returns the cursors of an answer, and their decoded bytes.
func cursorsOf(body string) (cursors []string) {
	var page struct {
		Cursor string `json:"next_cursor"`
	}
	_ = json.Unmarshal([]byte(body), &page) // other answers have none
	if page.Cursor != "" {
		cursors = append(cursors, page.Cursor)
	}
	return cursors
}

// tellsOf reports whether a cursor is readable, like those for keys for all types.
func tellsOf(cursor string) bool {
	return regexp.MustCompile(`^([ad][0-9a-z]+|e[0-9a-z]+\.[0-9a-z]+)$`).MatchString(cursor)
}

// securityTable returns the calls in the table of docs/security.md that says what a key with task_types learns from
// them.
func securityTable(t *testing.T) (names []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### What a key with task_types learns\n")
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			t.Errorf("a line of the table has %d cells: %s", len(cells), line)
		}
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[0], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// TestTenants_Table ensures that docs/security.md says for every call what a key with task_types learns from it, and
// that each is tried.
func TestTenants_Table(t *testing.T) {
	t.Parallel()
	var calls, tried []string
	for _, c := range allCalls(t) {
		calls = append(calls, c.name)
	}
	for name := range tenantCalls {
		tried = append(tried, name)
	}
	table := securityTable(t)
	for _, list := range [][]string{calls, tried, table} {
		slices.Sort(list)
	}
	if !slices.Equal(calls, tried) {
		t.Errorf("the calls are %v, those that are tried %v", calls, tried)
	}
	if !slices.Equal(calls, table) {
		t.Errorf("the calls are %v, those in the table of docs/security.md %v", calls, table)
	}
}

// TestTenants ensures that a key with task_types sees nothing of tasks of other types in any call: in the body, the
// headers and the cursors, at the leader and through another node.
func TestTenants(t *testing.T) {
	t.Parallel()
	for _, c := range allCalls(t) {
		if c.roles.Has(door.RoleNone) {
			continue // it gives every client the same answer, with a key or without
		}
		requests := tenantCalls[c.name]
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			leader, follower, node := setupKeys(t, typed()...)
			ids := tenants(t, leader, node)
			for _, s := range []*Server{leader, follower} {
				for _, request := range requests {
					if s == follower && strings.Contains(request, "stale") {
						continue // it has its own state here
					}
					for id, n := range ids {
						request = strings.ReplaceAll(request, "{"+id+"}", strconv.FormatUint(n, 10))
					}
					role, rest, _ := strings.Cut(request, " ")
					method, rest, _ := strings.Cut(rest, " ")
					target, body, _ := strings.Cut(rest, " ")
					got := s.call(t, method+" "+target, body, with(role))
					text := fmt.Sprint(got.header) + got.body
					if found := leaks(ids, strings.ReplaceAll(text, target, "")); len(found) > 0 {
						t.Errorf("%s: %q in %d %.3000s", request, found, got.status, text)
					}
					for _, cursor := range cursorsOf(got.body) {
						if tellsOf(cursor) {
							t.Errorf("%s: the cursor %s can be read", request, cursor)
						}
					}
					if got.status == http.StatusBadRequest || got.status >= 500 {
						t.Errorf("%s is not answered as it should be: %d %s", request, got.status, got.body)
					}
				}
			}
		})
	}
}

// TestTenants_Stream ensures that a stream shows a key with task_types no more than a page does, of past and new
// events.
func TestTenants_Stream(t *testing.T) {
	t.Parallel()
	leader, _, node := setupKeys(t, typed()...)
	ids := tenants(t, leader, node)
	oldest := leader.call(t, "GET /api/events?limit=1", "", with("root"))
	_, after, _ := strings.Cut(oldest.body, `"next":"`)
	after, _, _ = strings.Cut(after, `"`)
	f := openStream(t, listen(t, leader), "/api/events?task_type=a&after="+after, with("reader"))
	read := func(until string) {
		t.Helper()
		for {
			b, err := f.next()
			if err != nil {
				t.Fatal(err)
			}
			if found := leaks(ids, b.data); len(found) > 0 {
				t.Errorf("%q in %s", found, b.data)
			}
			if strings.Contains(b.data, until) {
				return
			}
		}
	}
	f.begin()
	read(fmt.Sprintf(`"task_id":%d,"event":"submitted"`, ids["last"]))
	step := ids["parent running"] + 1
	leader.call(t, fmt.Sprintf("POST /api/tasks/%d/claim", step), `{"worker_id":"m4rk-worker"}`, with("root")).good(t, 200)
	leader.call(t, fmt.Sprintf("POST /api/tasks/%d/fail", step), `{"worker_id":"m4rk-worker","error":"m4rk-error"}`, with("root")).good(t, 200)
	read(fmt.Sprintf(`"task_id":%d,"event":"failed"`, ids["parent running"]))
}

// TestTenants_OwnParent ensures that nothing is hidden of families that are entirely of the key's types, except the
// end of a removed one.
func TestTenants_OwnParent(t *testing.T) {
	t.Parallel()
	leader, _, _ := setupKeys(t, typed()...)
	call := func(target, body, role string) string {
		t.Helper()
		got := leader.call(t, target, body, with(role))
		if got.status >= 300 {
			t.Fatalf("%s: %d %s", target, got.status, got.body)
		}
		return got.body
	}
	submit := `{"task_type":"a","idempotency_key":"p","steps":[{"step":"one","task_type":"b","params":1},{"step":"two","task_type":"a","params":1,"depends_on":["one"]}]}`
	call("POST /api/tasks", submit, "producer")
	if got := call("GET /api/tasks/3/why", "", "reader"); !strings.Contains(got, `"steps":["one"]`) {
		t.Errorf("why: %s", got)
	}
	call("POST /api/tasks/2/claim", `{"worker_id":"w"}`, "worker")
	call("POST /api/tasks/2/fail", `{"worker_id":"w","error":"broken","permanent":true}`, "worker")
	const failed = `step one failed: broken`
	for target, want := range map[string]string{
		"GET /api/tasks/1":                                 failed,
		"GET /api/tasks/3":                                 `"depends_on":["one"]`,
		"GET /api/tasks?task_type=a":                       failed,
		"GET /api/tasks?task_type=a&parent_id=1":           `"depends_on":["one"]`,
		"GET /api/failures?task_type=a":                    failed,
		"GET /api/events?task_type=a&after=0&event=failed": failed,
		"GET /api/tasks/1/events":                          failed,
	} {
		if got := call(target, "", "reader"); !strings.Contains(got, want) {
			t.Errorf("%s: %s", target, got)
		}
	}
	if got := call("POST /api/tasks", submit, "producer"); !strings.Contains(got, failed) || !strings.Contains(got, `"steps":[{"step":"one"`) {
		t.Errorf("submitted again: %s", got)
	}
}

// TestTenants_Cursors ensures that the pages of a key with task_types have each of its tasks once, with cursors that
// any node accepts, and that are useless to keys for all types.
func TestTenants_Cursors(t *testing.T) {
	t.Parallel()
	leader, follower, node := setupKeys(t, typed()...)
	tenants(t, leader, node)
	for _, query := range []string{"", "&order=desc", "&order=ended&status=failed"} {
		target := "GET /api/tasks?task_type=a&limit=2" + query
		seen, cursor := make(map[uint64]bool), ""
		servers := []*Server{leader, follower}
		for i := 0; i == 0 || cursor != ""; i++ {
			ask := target
			if cursor != "" {
				ask += "&cursor=" + cursor
				leader.call(t, ask, "", with("root")).refused(t, wire.CodeInvalidRequest)
			}
			page := servers[i%2].call(t, ask, "", with("reader")).good(t, 200)
			for _, task := range page.Tasks {
				if seen[task.ID] {
					t.Errorf("%s: task %d comes twice", target, task.ID)
				}
				seen[task.ID] = true
			}
			cursor = page.NextCursor
		}
		whole := leader.call(t, "GET /api/tasks?task_type=a&limit=1000"+query, "", with("root")).good(t, 200)
		if len(seen) != len(whole.Tasks) {
			t.Errorf("%s: %d of %d tasks", target, len(seen), len(whole.Tasks))
		}
		plain := leader.call(t, target, "", with("root")).good(t, 200).NextCursor
		leader.call(t, target+"&cursor="+plain, "", with("reader")).refused(t, wire.CodeInvalidRequest)
	}
}
