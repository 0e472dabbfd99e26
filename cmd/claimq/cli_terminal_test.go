package main

import "strings"

// terminalCases returns command lines for a terminal of 80 columns.
func terminalCases() []cliCase {
	one := func(call, answer string) map[string]string { return map[string]string{call: answer} }
	wordy := strings.NewReplacer(`"no route"`, `"dial tcp 10.0.0.17:25: connect: no route to host, after 3 tries \u001b[31m and 東京 to wait"`)
	failed := `{"id":12345,"task_type":"mail","priority":5,"max_attempts":3,"attempts":3,"status":"failed","worker_id":"mailer-7f9c-2210-abcdefghij","claim_token":9,` +
		`"created_at":"2026-01-02T02:00:00.000Z","error":"no route"}`
	return []cliCase{
		{name: "terminal list", width: 80, args: []string{"list"}, answers: one("GET /api/tasks?limit=100", wordy.Replace(`200 {"success":true,"tasks":[`+failed+`,`+cliTask+`],"next_cursor":null}`))},
		{name: "terminal list of all kinds", width: 80, args: []string{"list"}, answers: one("GET /api/tasks?limit=100", wordy.Replace(`200 {"success":true,"tasks":[`+cliLater+`,`+failed+`],"next_cursor":null}`))},
		{name: "terminal list that fits", width: 80, args: []string{"list"}, answers: one("GET /api/tasks?limit=100", `200 {"success":true,"tasks":[`+strings.Replace(cliTask, "w1", "w", 1)+`],"next_cursor":null}`)},
		{name: "terminal types", width: 80, args: []string{"types"}, answers: one("GET /api/types", `200 {"success":true,"types":[`+cliType+`]}`)},
		{name: "terminal workers", width: 80, args: []string{"workers"}, answers: one("GET /api/workers", `200 {"success":true,"workers":[{"worker_id":"mailer-7f9c-2210-abcdefghij","claimed":40,"task_ids":[`+
			strings.Repeat("12345,", 39)+`12346],"last_seen_at":"2026-01-02T03:04:00.750Z"}]}`)},
		{name: "terminal cluster status", width: 80, args: []string{"cluster", "status"}, answers: one("GET /api/cluster", `200 {"success":true,"leader":"n1","term":7,"feature_level":5,"nodes":[`+
			cliNode("n1", "voter", "leader", true, "")+","+cliNode("n2", "voter", "unknown", false, "it was last heard of 3m0s ago")+","+cliNode("n3", "voter", "follower", true, "")+`]}`)},
		{name: "terminal get", width: 80, args: []string{"get", "17"}, answers: one("GET /api/tasks/17", `200 {"success":true,"task":`+strings.Replace(cliDone, "RESULT", strings.Repeat("x", 2000), 1)+`}`)},
	}
}
