package memory

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// row is one way to ask a call for much.
type row struct {
	call   string // its name in the API's table
	about  string // what is large, "" if that is plain
	method string
	// target may have {n}, a different number for each request, {fresh}, the id of a task of the
	// row's own, and {NAME}, the id of a task of the state.
	target string
	body   func(*state) string // nil: none
	want   int                 // a status that must come at least once
	sqs    string              // the call of a client of SQS, "" for the API's own

	fresh  bool                                // it starts with tasks that no other row has used
	during func(context.Context, *state) error // once all have asked; nil: nothing
}

// eventStream is the target that is asked for as a stream.
const eventStream = "/api/events?after=0"

// text is a body that is known.
func text(body string) func(*state) string { return func(*state) string { return body } }

func get(call, about, target string) row {
	return row{call: call, about: about, method: http.MethodGet, target: target, want: 200}
}

func post(call, about, target string, want int, body func(*state) string) row {
	return row{call: call, about: about, method: http.MethodPost, target: target, body: body, want: want}
}

// sqsRow is a call of a client of SQS; params are its members of JSON.
func sqsRow(op, about string, want int, params func(*state) string) row {
	name := strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(op, "${1}_${2}"))
	r := post("sqs_"+name, about, "/", want, func(s *state) string { return "{" + params(s) + "}" })
	r.sqs = op
	return r
}

// sqsQueue names the queue of the rows, and sqsReceive is the receive whose answer they repeat.
const (
	sqsQueue   = `"QueueUrl":"/0/` + typeQueue + `"`
	sqsReceive = sqsQueue + `,"MaxNumberOfMessages":10,"VisibilityTimeout":43200,"AttributeNames":["All"],"MessageAttributeNames":["All"]`
)

// sqsEntries are the ten entries of a batch with these fields.
func sqsEntries(fields string) string {
	return sqsQueue + "," + list("Entries", 10, func(i int) string { return `{"Id":"` + strconv.Itoa(i) + `",` + fields + `}` })
}

// sqsRows ask every call of clients of SQS.
func sqsRows() []row {
	const handle = `"ReceiptHandle":"forged"`
	return []row{
		sqsRow("CreateQueue", "that is there", 200, text(`"QueueName":"`+typeQueue+`"`)),
		sqsRow("DeleteQueue", "that is not there", 400, text(`"QueueUrl":"/0/none"`)),
		sqsRow("GetQueueUrl", "", 200, text(`"QueueName":"`+typeQueue+`"`)),
		sqsRow("ListQueues", "", 200, text("")),
		sqsRow("GetQueueAttributes", "", 200, text(sqsQueue+`,"AttributeNames":["All"]`)),
		sqsRow("SetQueueAttributes", "", 200, text(sqsQueue+`,"Attributes":{"DelaySeconds":"0"}`)),
		sqsRow("PurgeQueue", "that is not there", 400, text(`"QueueUrl":"/0/none"`)),
		sqsRow("TagQueue", "", 200, text(sqsQueue+`,"Tags":{"a":"b"}`)),
		sqsRow("UntagQueue", "", 200, text(sqsQueue+`,"TagKeys":["b"]`)),
		sqsRow("ListQueueTags", "", 200, text(sqsQueue)),
		sqsRow("SendMessage", "1 MiB", 200, func(*state) string { return `"QueueUrl":"/0/` + typeRow + `","MessageBody":` + field("x", valueMax) }),
		sqsRow("SendMessageBatch", "1 MiB", 200, func(*state) string {
			return strings.Replace(sqsEntries(`"MessageBody":`+field("x", valueMax/10)), "/0/"+typeQueue, "/0/"+typeRow, 1)
		}),
		sqsRow("ReceiveMessage", "a repeat of 1 MiB", 200, text(sqsReceive)),
		sqsRow("DeleteMessage", "", 400, text(sqsQueue+`,`+handle)),
		sqsRow("DeleteMessageBatch", "", 200, text(sqsEntries(handle))),
		sqsRow("ChangeMessageVisibility", "", 400, text(sqsQueue+`,"VisibilityTimeout":1,`+handle)),
		sqsRow("ChangeMessageVisibilityBatch", "", 200, text(sqsEntries(`"VisibilityTimeout":1,`+handle))),
		sqsRow("ListDeadLetterSourceQueues", "", 0, text(sqsQueue)),
		sqsRow("StartMessageMoveTask", "", 0, text(`"SourceArn":"arn:aws:sqs:eu:000000000000:none"`)),
		sqsRow("ListMessageMoveTasks", "", 0, text(`"SourceArn":"arn:aws:sqs:eu:000000000000:none"`)),
		sqsRow("CancelMessageMoveTask", "", 0, text(`"TaskHandle":"h"`)),
		sqsRow("AddPermission", "", 400, text(sqsQueue)),
		sqsRow("RemovePermission", "", 400, text(sqsQueue)),
	}
}

// onFresh is a row with fresh tasks.
func onFresh(r row) row {
	r.fresh = true
	return r
}

// repeat is the body of a claim that was answered before, of a thousand tasks with many labels.
func repeat(*state) string {
	return fmt.Sprintf(`{"worker_id":%q,"task_types":[%q],"limit":%d,"claim_request_id":%[2]q,"lease_ms":86400000}`, worker, typeLabels, itemsMax)
}

// late is the body of a claim that waits, of one request with all others of the row.
func late(s *state) string {
	return fmt.Sprintf(`{"worker_id":%q,"task_types":[%q],"limit":%d,"claim_request_id":"late-%d","wait_ms":60000}`, worker, typeLate, itemsMax, s.round)
}

// submitLate submits what they wait for.
func submitLate(ctx context.Context, s *state) error {
	_, err := s.submit(ctx, itemsMax, func(int) string {
		return `"task_type":"` + typeLate + `","retention_ms":0,"params":1,"labels":` + labels()
	})
	return err
}

// manyTypes is the body of a claim that waits for a thousand types without tasks.
func manyTypes(*state) string {
	return `{"worker_id":"w","wait_ms":2000,` + list("task_types", itemsMax, func(i int) string { return strconv.Quote(name("none", i)) }) + `}`
}

// many returns the body that submits count tasks with many labels for one row.
func many(count int) string {
	all := labels()
	return list("tasks", count, func(int) string {
		return `{"task_type":"` + typeRow + `","retention_ms":0,"params":1,"labels":` + all + `}`
	})
}

// rows ask every call of the API.
func rows() []row { return append(nativeRows(), sqsRows()...) }

func nativeRows() []row {
	large := func(before, after string) func(*state) string {
		return func(*state) string { return before + field("x", valueMax-100) + after }
	}
	const holder = `{"worker_id":"w"`
	const processor = `{"processor_id":"p"`
	return []row{
		onFresh(post("submit_tasks", "1 MiB", "/api/tasks", 201, large(`{"task_type":"row","retention_ms":0,"params":`, `}`))),
		onFresh(post("submit_tasks", "1,000 with labels", "/api/tasks", 200, func(*state) string { return "{" + many(itemsMax) + "}" })),
		onFresh(post("submit_tasks", "a parent of 1,000 steps", "/api/tasks", 201, func(*state) string { return `{"task_type":"row","retention_ms":0,"params":1,` + manySteps() + `}` })),
		post("submit_tasks", "a repeat of that", "/api/tasks", 200, func(*state) string { return `{"idempotency_key":"steps","params":1,` + manySteps() + `}` }),
		get("get_task", "1,000 steps", "/api/tasks/{steps}"),
		get("get_task", "large results", "/api/tasks/{large-0}"),
		get("get_task", "20 long errors", "/api/tasks/{tried}"),
		get("get_task_by_key", "1,000 steps", "/api/tasks/by-key/steps"),
		get("list_tasks", "large values", "/api/tasks?task_type=large&include=params,result"),
		get("list_tasks", "many labels", "/api/tasks?task_type=labels&limit=1000"),
		get("list_tasks", "steps", "/api/tasks?parent_id={steps}&limit=1000"),
		get("list_tasks", "long errors", "/api/tasks?task_type=failed&status=failed&order=ended&limit=1000"),
		get("list_tasks", "that nothing matches", "/api/tasks?label=no:label&limit=1000"),
		get("list_failures", "10,000 groups", "/api/failures?limit=1000"),
		get("explain_task", "", "/api/tasks/{steps}/why"),
		{call: "change_task", about: "1 MiB", method: http.MethodPatch, target: "/api/tasks/{waits}", body: func(*state) string { return `{"priority":1,"labels":` + labels() + `}` }, want: 200},
		onFresh(row{call: "delete_task", method: http.MethodDelete, target: "/api/tasks/{fresh}", want: 409}),
		post("retry_task", "1 MiB", "/api/tasks/{waits}/retry", 200, nil),
		onFresh(post("signal_task", "", "/api/tasks/{fresh}/signal", 409, nil)),
		onFresh(post("add_steps", "", "/api/tasks/{fresh}/steps", 409, text(holder+`,"steps":[{"step":"a","params":1}]}`))),
		onFresh(post("cancel_task", "", "/api/tasks/{fresh}/cancel", 200, nil)),
		post("act_on_tasks", "10,000 failed tasks", "/api/tasks/actions", 200, text(`{"action":"retry","filter":{"task_type":"failed"},"dry_run":true}`)),
		post("run_batch", "10 repeats of 1,000 claims", "/api/batch", 200, func(*state) string {
			return "{" + list("ops", 10, func(int) string { return `{"op":"claim",` + repeat(nil)[1:] }) + "}"
		}),
		onFresh(post("run_batch", "1,000 submits with labels", "/api/batch", 200, func(*state) string {
			all := labels()
			return "{" + list("ops", itemsMax, func(int) string {
				return `{"op":"submit","task_type":"row","retention_ms":0,"params":1,"labels":` + all + `}`
			}) + "}"
		})),
		post("claim_tasks", "a repeat of 1,000", "/api/tasks/claim", 200, repeat),
		{
			call: "claim_tasks", about: "1,000 for one request that all wait with", method: http.MethodPost, target: "/api/tasks/claim",
			body: late, want: 200, fresh: true, during: submitLate,
		},
		post("claim_tasks", "waiting for 1,000 types", "/api/tasks/claim", 0, manyTypes),
		post("claim_task", "1 MiB", "/api/tasks/{waits}/claim", 200, text(holder+`,"claim_request_id":"waits","lease_ms":1000}`)),
		post("complete_task", "a repeat of 1 MiB", "/api/tasks/{large-0}/complete", 200, func(s *state) string {
			return fmt.Sprintf(`{"worker_id":%q,"claim_token":%d,"result":%s}`, worker, *s.tasks["large-0"].ClaimToken, field("r", valueMax-100))
		}),
		onFresh(post("complete_task", "1,000 follow-ups and a claim of 1,000", "/api/tasks/{fresh}/complete", 0, func(*state) string {
			return holder + `,` + strings.Replace(many(itemsMax), `"tasks"`, `"submit"`, 1) + `,"claim":{"task_types":["none"],"limit":1000}}`
		})),
		post("fail_task", "an error of 1 MiB", "/api/tasks/{large-0}/fail", 0, large(holder+`,"error":`, `}`)),
		post("extend_task", "20 long errors", "/api/tasks/{tried}/extend", 200, func(*state) string { return holder + `,"lease_ms":86400000,"progress":` + field("p", 4<<10) + `}` }),
		post("release_task", "1 MiB", "/api/tasks/{large-0}/release", 409, text(holder+`}`)),
		get("get_finalization", "", "/api/tasks/{results}/finalization"),
		post("claim_finalization", "", "/api/tasks/{results}/finalization/claim", 200, text(processor+`}`)),
		post("extend_finalization", "", "/api/tasks/{results}/finalization/extend", 200, text(processor+`}`)),
		post("release_finalization", "", "/api/tasks/{results}/finalization/release", 0, text(`{"processor_id":"q"}`)),
		post("finalize_task", "1 MiB", "/api/tasks/{results}/finalize", 0, large(`{"processor_id":"q","outcome":"completed","result":`, `}`)),
		get("list_types", "1,000", "/api/types?limit=1000"),
		get("get_type", "", "/api/types/labels"),
		{call: "change_type", method: http.MethodPatch, target: "/api/types/row", body: text(`{"max_attempts":3}`), want: 200},
		{call: "set_share", method: http.MethodPut, target: "/api/types/row/shares/acme", body: text(`{"weight":300}`), want: 200},
		get("list_shares", "1,000 of 10,000, long", "/api/types/shares/shares?limit=1000"),
		get("list_shares", "that have settings", "/api/types/shares/shares?settings=true"),
		{call: "delete_share", method: http.MethodDelete, target: "/api/types/row/shares/acme", want: 200},
		get("get_defaults", "", "/api/defaults"),
		{call: "change_defaults", method: http.MethodPatch, target: "/api/defaults", body: text(`{"backoff":null}`), want: 200},
		get("list_schedules", "1 MiB each", "/api/schedules"),
		get("list_schedules", "many labels", "/api/schedules?after="+name("plan", largePlans)),
		get("get_schedule", "1 MiB", "/api/schedules/"+name("plan", 0)),
		get("list_slots", "", "/api/slots?every_ms=1000&limit=100"),
		{call: "set_schedule", about: "1 MiB", method: http.MethodPut, target: "/api/schedules/row", body: func(*state) string { return plan(`"params":` + field("p", valueMax-100)) }, want: 200},
		{call: "delete_schedule", method: http.MethodDelete, target: "/api/schedules/row", want: 0},
		get("follow_events", "1,000", "/api/events?after=0&limit=1000"),
		get("follow_events", "a stream from the beginning", eventStream),
		get("list_task_events", "", "/api/tasks/{tried}/events"),
		get("list_workers", "3,000", "/api/workers"),
		get("get_history", "6 hours", "/api/history?minutes=360"),
		get("get_stats", "10,000 types", "/api/stats"),
		get("get_cluster", "", "/api/cluster"),
		post("join_node", "", "/api/cluster/join", 0, text(`{"node_id":"other","peer_addr":"127.0.0.1:1"}`)),
		post("remove_node", "", "/api/cluster/remove", 0, text(`{"node_id":"other"}`)),
		post("promote_node", "", "/api/cluster/promote", 0, text(`{"node_id":"other"}`)),
		post("demote_node", "", "/api/cluster/demote", 0, text(`{"node_id":"other"}`)),
		post("transfer_leadership", "", "/api/cluster/transfer", 0, text(`{"node_id":"other"}`)),
		post("upgrade_cluster", "", "/api/cluster/upgrade", 0, nil),
		get("get_hashes", "", "/api/cluster/hash"),
		get("list_join_tokens", "", "/api/cluster/tokens"),
		post("set_join_token", "", "/api/cluster/tokens", 0, text(fmt.Sprintf(`{"token_sha256":"%064x","expires_in_ms":3600000}`, 99))),
		post("revoke_join_token", "", "/api/cluster/tokens/revoke", 0, text(`{"id":"0123456789ab"}`)),
		post("take_snapshot", "", "/api/snapshots", 200, nil),
		get("save_snapshot", "all of the state", "/api/snapshots/latest"),
		post("restore_snapshot", "8 MiB that are none", "/api/restore", 0, func(*state) string { return strings.Repeat("x", 8<<20) }),
		post("reload_files", "2,000 keys", "/api/reload", 200, nil),
		get("list_keys", "1,000", "/api/keys?limit=1000"),
		get("get_health", "", "/healthz"),
		get("get_readiness", "", "/readyz"),
		get("get_metrics", "", "/metrics"),
		get("get_openapi", "", "/openapi.json"),
		get("get_root", "", "/"),
		{call: "get_page_without_slash", method: http.MethodGet, target: "/ui", want: 0},
		{call: "get_page", method: http.MethodGet, target: "/ui/app.js", want: 0},
		get("get_session", "", "/ui/session"),
		post("log_in", "1 MiB", "/ui/login", 0, large(`{"key":`, `}`)),
		post("log_out", "", "/ui/logout", 0, nil),
	}
}
