package main

import "strings"

const (
	cliSchedule = `{"name":"nightly","task":{"task_type":"report","params":{ "all": true },"priority":5},"cron":"30 2 * * *","every_ms":null,"timezone":"Europe/Prague","overlap":"skip",` +
		`"catch_up":"one","paused":false,"next_run_at":"2026-01-03T01:30:00.000Z","last_task_id":17,"last_run_at":"2026-01-02T01:30:00.000Z","skipped":2,` +
		`"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}`
	cliPaused = `{"name":"poll","task":{"params":{}},"cron":null,"every_ms":30000,"timezone":null,"overlap":"allow","catch_up":"skip","paused":true,"next_run_at":null,` +
		`"last_task_id":null,"last_run_at":null,"skipped":0,"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}`
	cliWithSteps = `{"name":"weekly","task":{"task_type":"report","steps":[{"step":"sum","task_type":"part","params":2,"depends_on":["get","mail"]},{"step":"get","params":1.50},{"step":"mail","params":{}}],"on_step_failure":"continue"},` +
		`"cron":"@weekly","every_ms":null,"timezone":"UTC","overlap":"skip","catch_up":"one","paused":false,"next_run_at":"2026-01-04T00:00:00.000Z","last_task_id":null,"last_run_at":null,"skipped":0,` +
		`"created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z"}`
	cliEvents = `{"index":41,"sub":0,"time":"2026-01-02T03:04:00.500Z","task_id":17,"event":"claimed","worker_id":"w1","claim_token":9,"attempt":1,"message":""},` +
		`{"index":42,"sub":3,"time":"2026-01-02T03:04:01.500Z","task_id":17,"event":"failed","worker_id":"w1","claim_token":9,"attempt":1,"message":"\u001b[31mred"},` +
		`{"index":43,"sub":0,"time":"2026-01-02T03:04:02.000Z","task_id":null,"event":"type_changed","worker_id":null,"claim_token":null,"attempt":null,"message":"mail"}`
)

// sightCases returns the command lines that show tasks, types, workers and times.
func sightCases() []cliCase {
	one := func(call, answer string) map[string]string { return map[string]string{call: answer} }
	return []cliCase{
		{
			name: "submit and wait", args: []string{"submit", "mail", "--key", "k", "--wait", "1h"},
			answers: map[string]string{
				"POST /api/tasks": `201 {"success":true,"created":true,"task":` + cliTask + `}`, "GET /api/tasks/17?wait_ms=6000": `200 {"success":true,"task":` + strings.Replace(cliTask, "claimed", "completed", 1) + `}`,
			},
		},
		{
			name: "submit and wait for a failure", args: []string{"submit", "mail", "--key", "k", "--wait", "1h"}, want: 1,
			answers: map[string]string{"POST /api/tasks": `201 {"success":true,"created":true,"task":` + cliTask + `}`, "GET /api/tasks/17?wait_ms=6000": `200 {"success":true,"task":` + cliDone + `}`},
		},
		{name: "submit a file and wait", args: []string{"submit", "--file", "-", "--wait", "1s"}, want: 2},
		{name: "list by all", args: []string{"list", "--worker", "w1", "--parent", "3", "--label", "tier=gold", "--label", "a=b:c", "--created-after", "90m", "--created-before", "2026-01-02T03:04:05.5+01:00", "--newest-first"}, answers: one(
			"GET /api/tasks?created_after=2026-01-02T01%3A34%3A05.75Z&created_before=2026-01-02T02%3A04%3A05.5Z&label=a%3Ab%3Ac&label=tier%3Agold&limit=100&order=desc&parent_id=3&worker_id=w1",
			`200 {"success":true,"tasks":[],"next_cursor":null}`)},
		{name: "list last ended", args: []string{"list", "--status", "failed", "--error-group", "b3a41043fcf58a75", "--last-ended-first"}, answers: one(
			"GET /api/tasks?error_group=b3a41043fcf58a75&limit=100&order=ended&status=failed", `200 {"success":true,"tasks":[`+cliDone+`],"next_cursor":null}`)},
		{name: "list in two orders", args: []string{"list", "--newest-first", "--last-ended-first"}, want: 2},
		{name: "failures", args: []string{"failures", "--type", "mail", "--limit", "2"}, answers: one("GET /api/failures?limit=2&task_type=mail", `200 {"success":true,"failures":[`+
			`{"group":"b3a41043fcf58a75","task_type":"mail","signature":"timeout after <n> ms","example":"timeout after 12 ms","count":9001,"first_at":"2026-01-01T00:00:00.000Z","last_at":"2026-01-02T03:04:00.500Z","ids":[17,12]},`+
			`{"group":"06559b59e28b4a3a","task_type":"mail","signature":"","example":"","count":1,"first_at":"2026-01-01T00:00:00.000Z","last_at":"2026-01-01T00:00:00.000Z","ids":[3]}],`+
			`"groups":5,"looked":10000,"failed":48112,"next_cursor":"e1.1"}`)},
		{name: "failures none", args: []string{"failures"}, answers: one("GET /api/failures?limit=20", `200 {"success":true,"failures":[],"groups":0,"looked":0,"failed":0,"next_cursor":null}`)},
		{name: "failures bad limit", args: []string{"failures", "--limit", "0"}, want: 2},
		{name: "history", args: []string{"history", "--type", "mail", "--minutes", "1"}, answers: one("GET /api/history?minutes=1&task_type=mail",
			`200 {"success":true,"task_type":"mail","interval_ms":60000,"since":"2026-01-01T00:00:00.000Z","from":"2026-01-02T03:59:00.000Z","to":"2026-01-02T04:01:10.000Z","kept":true,`+
				`"submitted":[12345,0,7],"completed":[118,0,6],"failed":[2,0,5],"pending":[40,39,4],"claimed":[12,0,3],"oldest_pending_age_ms":[1200,61200,0],`+
				`"waited_p50_ms":[40,null,null],"waited_p99_ms":[960,null,null],"ran_p50_ms":[207,null,8],"ran_p99_ms":[65000,null,9]}`)},
		{name: "history not begun", args: []string{"history"}, answers: one("GET /api/history?minutes=30", `200 {"success":true,"interval_ms":60000,"since":null,"from":null,"to":null,"kept":true,"submitted":[]}`)},
		{name: "history not kept", args: []string{"history", "--type", "mail"}, answers: one("GET /api/history?minutes=30&task_type=mail",
			`200 {"success":true,"interval_ms":60000,"since":null,"from":null,"to":null,"kept":false,"submitted":[]}`)},
		{name: "history uneven", args: []string{"history"}, want: 1, answers: one("GET /api/history?minutes=30",
			`200 {"success":true,"interval_ms":60000,"since":"2026-01-01T00:00:00.000Z","from":"2026-01-01T00:00:00.000Z","to":"2026-01-01T00:00:30.000Z","kept":true,"submitted":[1],"completed":[]}`)},
		{name: "history bad minutes", args: []string{"history", "--minutes", "361"}, want: 2},
		{name: "list bad time", args: []string{"list", "--created-after", "tomorrow"}, want: 2},
		{name: "why", args: []string{"why", "17"}, answers: one("GET /api/tasks/17/why", `200 {"success":true,"ahead":3,"reasons":[`+
			`{"code":"type_paused","message":"Its type is paused"},{"code":"limit_reached","message":"Its type has all the claims that it may have","holders":[{"task_id":3,"worker_id":"w1"},{"task_id":4,"worker_id":"w2"}]},`+
			`{"code":"scheduled","message":"It waits until 2026-01-02T04:04:05.750Z","run_at":"2026-01-02T04:04:05.750Z"},{"code":"no_worker","message":"No worker asks for its type","last_asked_at":"2026-01-02T03:00:00.000Z"},`+
			`{"code":"group_behind","message":"Another task of its group comes first","id":12},{"code":"queued","message":"Others come first","ahead":1234}]}`)},
		{name: "why not waiting", args: []string{"why", "17"}, answers: map[string]string{
			"GET /api/tasks/17/why": `200 {"success":true,"ahead":null,"reasons":[]}`, "GET /api/tasks/17": `200 {"success":true,"task":` + cliTask + `}`,
		}},
		{name: "why ended", args: []string{"why", "17"}, answers: map[string]string{
			"GET /api/tasks/17/why": `200 {"success":true,"ahead":null,"reasons":[]}`, "GET /api/tasks/17": `200 {"success":true,"task":` + cliDone + `}`,
		}},
		{name: "why not found", args: []string{"why", "17"}, answers: one("GET /api/tasks/17/why", cliNotFound), want: 4},
		{name: "workers", args: []string{"workers"}, answers: one("GET /api/workers", `200 {"success":true,"workers":[{"worker_id":"w1","claimed":2,"task_ids":[17,18],"last_seen_at":"2026-01-02T03:04:00.750Z"},{"worker_id":"w2","claimed":0,"task_ids":[],"last_seen_at":null}]}`)},
		{name: "workers none", args: []string{"workers"}, answers: one("GET /api/workers", `200 {"success":true,"workers":[]}`)},
		{name: "workers of a type", args: []string{"workers", "--type", "mail"}, answers: map[string]string{
			"GET /api/workers": `200 {"success":true,"workers":[{"worker_id":"w1","claimed":2,"task_ids":[17,18],"last_seen_at":"2026-01-02T03:04:00.750Z"},{"worker_id":"w2","claimed":1,"task_ids":[19],"last_seen_at":null}]}`,
			"GET /api/tasks?limit=1000&status=claimed&task_type=mail":           `200 {"success":true,"tasks":[],"next_cursor":"ah"}`,
			"GET /api/tasks?cursor=ah&limit=1000&status=claimed&task_type=mail": `200 {"success":true,"tasks":[` + cliTask + `],"next_cursor":null}`,
		}},
		{name: "events of a task", args: []string{"events", "17"}, answers: one("GET /api/tasks/17/events", `200 {"success":true,"events":[`+cliEvents+`],"next":"43.0","place":"43.0"}`)},
		{name: "events", args: []string{"events", "--type", "mail", "--event", "failed", "--event", "expired", "--worker", "w1", "--after", "7.1"}, answers: map[string]string{
			"GET /api/events?after=7.1&event=failed&event=expired&limit=1000&task_type=mail&worker_id=w1": `200 {"success":true,"events":[` + cliEvents + `],"next":"43.0","place":"43.0"}`,
		}},
		{name: "events json", args: []string{"events", "--output", "json"}, answers: map[string]string{
			"GET /api/events?limit=1000": `200 {"success":true,"events":[` + cliEvents + `],"next":"43.0","place":"43.0"}`,
		}},
		{name: "events gone", args: []string{"events", "--after", "1.0"}, want: 1, answers: one("GET /api/events?after=1.0&limit=1000", `410 {"success":false,"error":"Events are gone","code":"events_gone","message":"Begin at the oldest","oldest":"17.0","request_id":"r1"}`)},
		{name: "events of a task filtered", args: []string{"events", "17", "--follow"}, want: 2},
		{name: "bulk dry run", args: []string{"bulk", "retry", "--status", "failed", "--label", "tier=gold", "--dry-run", "--add-attempts", "3"}, answers: one("POST /api/tasks/actions", `200 {"success":true,"matched":12345,"done":0,"can":12000,"cannot":{"max_attempts_reached":340,"nothing_to_do":5}}`)},
		{name: "bulk", args: []string{"bulk", "delete", "--all", "--expect", "3"}, answers: one("POST /api/tasks/actions", `200 {"success":true,"matched":3,"done":2}`)},
		{name: "bulk of a group", args: []string{"bulk", "retry", "--error-group", "b3a41043fcf58a75", "--dry-run"}, answers: one("POST /api/tasks/actions", `200 {"success":true,"matched":412,"done":0,"can":412,"cannot":{}}`)},
		{name: "bulk mismatch", args: []string{"bulk", "cancel", "--type", "mail", "--expect", "0"}, want: 1, answers: one("POST /api/tasks/actions", `409 {"success":false,"error":"3 tasks match, not 0","code":"count_mismatch","message":"Look again","matched":3,"expect":0,"request_id":"r1"}`)},
		{name: "bulk unknown", args: []string{"bulk", "cancel", "--type", "mail"}, want: 3, answers: one("POST /api/tasks/actions", "break")},
		{name: "bulk without filter", args: []string{"bulk", "delete"}, environ: []string{"CLAIMQ_STATUS=failed"}, want: 2},
		{name: "bulk of all and some", args: []string{"bulk", "delete", "--all", "--type", "mail"}, want: 2},
		{name: "schedule set", args: []string{"schedule", "set", "nightly", "report", `{ "all": true }`, "--cron", "30 2 * * *", "--timezone", "Europe/Prague", "--priority", "5"}, answers: one("PUT /api/schedules/nightly", `201 {"success":true,"schedule":`+cliSchedule+`}`)},
		{name: "schedule set every", args: []string{"schedule", "set", "poll", "fetch", "--every", "30s", "--overlap", "allow", "--catch-up", "skip", "--paused"}, answers: one("PUT /api/schedules/poll", `200 {"success":true,"schedule":`+cliPaused+`}`)},
		{name: "schedule set steps", args: []string{"schedule", "set", "weekly", "report", "--cron", "@weekly", "--steps", "-", "--on-step-failure", "continue"}, stdin: `[{"step": "get", "params": 1.50}]`, answers: one("PUT /api/schedules/weekly", `201 {"success":true,"schedule":`+cliWithSteps+`}`)},
		{name: "schedule set steps and params", args: []string{"schedule", "set", "weekly", "report", "-", "--cron", "@weekly", "--steps", "-"}, want: 2},
		{name: "schedule set never", args: []string{"schedule", "set", "poll", "fetch"}, want: 2},
		{name: "schedule set refused", args: []string{"schedule", "set", "poll", "fetch", "--cron", "x"}, want: 2, answers: one("PUT /api/schedules/poll", `400 {"success":false,"error":"Invalid cron","code":"invalid_request","message":"Five fields are allowed","field":"cron","request_id":"r1"}`)},
		{name: "schedule list", args: []string{"schedule", "list"}, answers: one("GET /api/schedules", `200 {"success":true,"schedules":[`+cliSchedule+`,`+cliPaused+`]}`)},
		{name: "schedule list pages", args: []string{"schedule", "list"}, answers: map[string]string{
			"GET /api/schedules": `200 {"success":true,"schedules":[` + cliSchedule + `],"next":"nightly"}`, "GET /api/schedules?after=nightly": `200 {"success":true,"schedules":[` + cliPaused + `],"next":null}`,
		}},
		{name: "schedule list none", args: []string{"schedule", "list"}, answers: one("GET /api/schedules", `200 {"success":true,"schedules":[]}`)},
		{name: "schedule get", args: []string{"schedule", "get", "nightly"}, answers: one("GET /api/schedules/nightly", `200 {"success":true,"schedule":`+cliSchedule+`}`)},
		{
			name: "schedule slots", args: []string{"schedule", "slots", "--cron", "30 2 * * 1-5", "--timezone", "Europe/Prague", "--after", "2026-01-02T04:00:00+01:00", "--limit", "2"},
			answers: one("GET /api/slots?after=2026-01-02T03%3A00%3A00Z&cron=30+2+%2A+%2A+1-5&limit=2&timezone=Europe%2FPrague", `200 {"success":true,"slots":["2026-01-05T01:30:00.000Z","2026-01-06T01:30:00.000Z"]}`),
		},
		{name: "schedule slots none", args: []string{"schedule", "slots", "--every", "90s"}, answers: one("GET /api/slots?every_ms=90000&limit=10", `200 {"success":true,"slots":[]}`)},
		{name: "schedule slots never", args: []string{"schedule", "slots", "--limit", "2"}, want: 2},
		{name: "schedule slots too many", args: []string{"schedule", "slots", "--cron", "@daily", "--limit", "101"}, want: 2},
		{name: "schedule delete", args: []string{"schedule", "delete", "nightly"}, answers: one("DELETE /api/schedules/nightly", `200 {"success":true,"deleted":1}`)},
		{name: "schedule delete none", args: []string{"schedule", "delete", "a/b"}, want: 4, answers: one("DELETE /api/schedules/a%2Fb", `404 {"success":false,"error":"Schedule not found","code":"schedule_not_found","message":"Check the name","request_id":"r1"}`)},
	}
}
