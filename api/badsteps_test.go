package api

import (
	"fmt"
	"strings"

	"github.com/claimq/claimq/api/wire"
)

// badSteps are invalid tasks with steps: each as a single task, as one of many, as a follow-up of a complete and as
// an op of a batch.
func badSteps() []badInput {
	var cases []badInput
	add := func(field, text string, tasks ...string) {
		for _, task := range tasks {
			cases = append(cases,
				badInput{"POST /api/tasks", `{` + task + `}`, it, field, text},
				badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[{"params":1},{` + task + `}]}`, it, "submit[1]." + field, text},
				badInput{"POST /api/batch", `{"ops":[{"op":"cancel","id":1},{"op":"submit",` + task + `}]}`, it, "ops[1]." + field, text})
		}
	}
	const name = "must be a string of 1 to 128 of A-Z a-z 0-9 _ . : -, but not . or .."
	long := strings.Repeat("x", 129)
	add("steps", "must be an array of 1 to 1000 steps", `"steps":[]`, `"steps":{}`, `"steps":"a"`, `"steps":7`, `"steps":true`, `"steps":[],"params":1`, steps(1001))
	add("steps[0]", "must be an object", `"steps":[1]`, `"steps":[null]`, `"steps":["a"]`, `"steps":[[]]`)
	add("steps[1]", "must be an object", `"steps":[{"step":"a","params":1},false]`)
	add("steps[0].step", "Missing required field: ", `"steps":[{}]`, `"steps":[{"params":1}]`, `"steps":[{"step":null,"params":1}]`)
	add("steps[0].step", name, `"steps":[{"step":"","params":1}]`, `"steps":[{"step":"a b","params":1}]`, `"steps":[{"step":"a/b","params":1}]`, `"steps":[{"step":"é","params":1}]`,
		`"steps":[{"step":"a\u0000","params":1}]`, `"steps":[{"step":"`+long+`","params":1}]`, `"steps":[{"step":7,"params":1}]`, `"steps":[{"step":["a"],"params":1}]`)
	add("steps[2].step", "the name a is the name of steps[0]", `"steps":[{"step":"a","params":1},{"step":"b","params":1},{"step":"a","params":1}]`, `"steps":[{"step":"a","params":1},{"step":"b","params":1},{"params":1,"step":"\u0061"}]`)
	add("steps[0].params", "Missing required field: ", `"steps":[{"step":"a"}]`, `"steps":[{"step":"a","params":null}]`, `"steps":[{"step":"a","depends_on":[]}]`)
	add("steps[0].payload", "params and payload are both given", `"steps":[{"step":"a","params":1,"payload":"AA=="}]`)
	add("steps[0].payload", "at least one byte", `"steps":[{"step":"a","payload":""}]`)
	add("steps[0].payload", "a string in base64", `"steps":[{"step":"a","payload":"!"}]`)
	add("steps[1].priority", "an integer from -2147483648 to 2147483647", `"steps":[{"step":"a","params":1},{"step":"b","params":1,"priority":"x"}]`)
	add("steps[0].delay_ms", "run_at and delay_ms are both given", `"steps":[{"step":"a","params":1,"delay_ms":1,"run_at":"2026-03-01T12:00:00Z"}]`)
	add("steps[0].backoff.initial_ms", "Missing required field: ", `"steps":[{"step":"a","params":1,"backoff":{}}]`)
	add("steps[0].labels.a", "a string of up to 64 bytes", `"steps":[{"step":"a","params":1,"labels":{"a":1}}]`)
	add("steps[0].lease_ms", "an integer from 100 to 86400000", `"steps":[{"step":"a","params":1,"lease_ms":1}]`)
	add("steps[0].prio", "Unknown field: ", `"steps":[{"step":"a","params":1,"prio":1}]`)
	add("steps[0].Step", "Unknown field: ", `"steps":[{"Step":"a","params":1}]`)
	for _, field := range []string{`idempotency_key":"k"`, `unique":"active"`, `traceparent":"x"`, `retention_ms":1`, `steps":[{"step":"b","params":1}]`, `finalize":"auto"`, `on_step_failure":"fail"`} {
		path, _, _ := strings.Cut(field, `"`)
		add("steps[0]."+path, "a step cannot have "+path, `"steps":[{"step":"a","params":1,"`+field+`}]`)
	}
	add("steps[3].retention_ms", "a step cannot have retention_ms", `"steps":[`+plainSteps(3)+`,{"step":"d","retention_ms":"x"}]`)

	const list = "must be an array of up to 999 names of steps"
	on := func(names string) string {
		return `"steps":[{"step":"a","params":1},{"step":"b","params":1,"depends_on":` + names + `}]`
	}
	add("steps[1].depends_on", list, on(`{}`), on(`"a"`), on(`1`), on(`true`), on(`[`+strings.TrimSuffix(strings.Repeat(`"a",`, 1000), ",")+`]`))
	add("steps[1].depends_on[0]", name, on(`[1]`), on(`[null]`), on(`[""]`), on(`["a b"]`), on(`[["a"]]`), on(`[{"step":"a"}]`), on(`["`+long+`"]`))
	add("steps[1].depends_on[1]", name, on(`["a",1]`), on(`["a",""]`))
	add("steps[1].depends_on[0]", "no step is named c", on(`["c"]`), on(`["c","a"]`))
	add("steps[1].depends_on[1]", "no step is named A", on(`["a","A"]`))
	add("steps[1].depends_on[0]", "a step cannot depend on itself", on(`["b"]`), on(`["b","a"]`))
	add("steps[1].depends_on[1]", "a is there twice", on(`["a","a"]`), on(`["a","\u0061"]`))
	edges := func(of ...string) string {
		var b []string
		for _, s := range of {
			step, names, _ := strings.Cut(s, ":")
			list := ""
			if names != "" {
				list = `"` + strings.ReplaceAll(names, ",", `","`) + `"`
			}
			b = append(b, `{"step":"`+step+`","params":1,"depends_on":[`+list+`]}`)
		}
		return `"steps":[` + strings.Join(b, ",") + `]`
	}
	add("steps[0].depends_on", "the steps wait for each other: a -> b -> a", edges("a:b", "b:a"), edges("a:b,c", "b:a", "c:"))
	add("steps[1].depends_on", "the steps wait for each other: b -> c -> d -> b", edges("a:b", "b:c", "c:d", "d:b"), edges("a:", "b:a,c", "c:d", "d:b"))
	add("steps[2].depends_on", "the steps wait for each other: c -> d -> c", edges("a:", "b:a", "c:d,b", "d:b,c"))
	ring := make([]string, 30)
	for i := range ring {
		ring[i] = fmt.Sprintf("s%d:s%d", i, (i+1)%30)
	}
	add("steps[0].depends_on", "s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> s6 -> s7 -> s8 -> s9 -> s10 -> s11 -> s12 -> s13 -> s14 -> s15 -> s16 -> s17 -> s18 -> s19 -> (10 more) -> s0", edges(ring...))

	const only = " is only for a task with steps"
	add("finalize", only, `"params":1,"finalize":"auto"`, `"params":1,"finalize":"claim","steps":null`)
	add("on_step_failure", only, `"params":1,"on_step_failure":"continue"`, `"on_step_failure":"fail","finalize":"claim","params":1`)
	add("finalize", `must be "auto" or "claim"`, one+`"finalize":"Claim"`, one+`"finalize":""`, one+`"finalize":true`, one+`"finalize":["claim"]`)
	add("on_step_failure", `must be "fail" or "continue"`, one+`"on_step_failure":"stop"`, one+`"on_step_failure":1`, one+`"on_step_failure":{}`)
	for _, field := range []string{`run_at":"2026-03-01T12:00:00Z"`, `run_at":"1970-01-01T00:00:00Z"`, `delay_ms":0`, `delay_ms":5`, `expires_at":"2026-03-01T12:00:00Z"`, `group":"g"`} {
		path, _, _ := strings.Cut(field, `"`)
		add(path, "a task with steps cannot have it", one+`"`+field, `"`+field+`,`+strings.TrimSuffix(one, ","))
	}
	add("payload", "params and payload are both given", one+`"params":1,"payload":"AA=="`)
	add("step", "Unknown field: ", `"step":"a","params":1`)
	add("depends_on", "Unknown field: ", `"params":1,"depends_on":[]`)
	return append(cases, badStepsSyntax()...)
}

// one is the field steps of a task, with one step and a comma.
const one = `"steps":[{"step":"a","params":1}],`

// plainSteps are n steps without dependencies; steps is the field of a task with them.
func plainSteps(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"step":"s%d","params":1}`, i)
	}
	return strings.Join(all, ",")
}

func steps(n int) string { return `"steps":[` + plainSteps(n) + `]` }

// badStepsSyntax are bodies that are refused as a whole.
func badStepsSyntax() []badInput {
	var cases []badInput
	add := func(code wire.Code, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{"POST /api/tasks", body, code, field, text})
		}
	}
	add(ir, "", "it ends too early", `{"steps":[`, `{"steps":[{`, `{"steps":[{"step":"a","depends_on":["b"`, `{"tasks":[{"steps":[{"step":"a","params":1}`, `{"steps":[{"step":"a","depends_on":[`)
	add(ir, "steps[0].step", "Duplicate field: steps[0].step", `{"steps":[{"step":"a","step":"a"}]}`)
	add(ir, "steps", "Duplicate field: steps", `{`+one+one+`"params":1}`)
	add(ir, "tasks[1].steps[0].depends_on", "Duplicate field: ", `{"tasks":[{"params":1},{"steps":[{"step":"a","depends_on":[],"depends_on":[]}]}]}`)
	add(ir, "steps[0].depends_on[0]", "UTF-8", "{\"steps\":[{\"step\":\"a\",\"depends_on\":[\"\xff\"]}]}")
	add(it, "steps[0].params", "must be nested at most 64 levels deep", `{"steps":[{"step":"a","params":`+nested(62)+`}]}`)
	add(tl, "steps[0].params", "steps[0].params is larger than 1048576 bytes", `{"steps":[{"step":"a","params":"`+strings.Repeat("x", 1<<20)+`"}]}`)

	const over = "The request submits more than 10000 tasks, steps counted"
	parents := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{`+steps(1000)+`},`, n), ",") }
	// 9 parents of 1,000 steps are 9,009 tasks.
	plain := strings.Repeat(`,{"params":1}`, 990)
	cases = append(cases,
		badInput{"POST /api/tasks", `{"tasks":[` + parents(10) + `]}`, ir, "tasks[9].steps[990]", over},
		badInput{"POST /api/tasks", `{"tasks":[` + parents(9) + `,{` + steps(990) + `},{"params":1}]}`, ir, "tasks[10]", over},
		badInput{"POST /api/tasks", `{"tasks":[` + parents(9) + `,{` + steps(991) + `}]}`, ir, "tasks[9].steps[990]", over},
		badInput{"POST /api/tasks", `{"tasks":[` + parents(9) + plain + `,{` + one + `"params":1}]}`, ir, "tasks[999].steps[0]", over},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[` + parents(10) + `]}`, ir, "submit[9].steps[990]", over},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[` + parents(9) + `,{` + steps(990) + `}]}`, ir, "submit", "The call changes up to 10001 tasks, steps counted; at most 10000 are allowed"},
		badInput{"POST /api/tasks/1/complete", `{"worker_id":"w","submit":[` + parents(9) + `],"claim":{"limit":991}}`, ir, "submit", "The call changes up to 10001 tasks, steps counted"},
	)
	ops := strings.Repeat(`{"op":"submit",`+steps(1000)+`},`, 9)
	return append(cases,
		badInput{"POST /api/batch", `{"ops":[` + ops + `{"op":"submit",` + steps(1000) + `}]}`, ir, "ops[9].steps[990]", over},
		badInput{"POST /api/batch", `{"ops":[` + ops + `{"op":"claim","worker_id":"w","limit":992}]}`, ir, "ops", "The ops change up to 10001 tasks; at most 10000 are allowed"},
		badInput{"POST /api/batch", `{"ops":[` + ops + `{"op":"complete","id":1,"worker_id":"w","submit":[{` + steps(990) + `}]}]}`, ir, "ops", "The ops change up to 10001 tasks"},
	)
}

// badFinalizations are invalid bodies of calls about a finalization.
func badFinalizations() []badInput {
	var cases []badInput
	add := func(target, field, text string, bodies ...string) {
		for _, body := range bodies {
			cases = append(cases, badInput{target, body, ir, field, text})
		}
	}
	const path = "POST /api/tasks/1/"
	for _, call := range []string{"finalization/claim", "finalization/extend", "finalization/release", "finalize"} {
		target, rest := path+call, ""
		if call == "finalize" {
			rest = `,"outcome":"completed"`
		}
		add(target, "processor_id", "Missing required field: processor_id", ``, " \n", `{}`, `{"processor_id":null`+rest+`}`)
		add(target, "processor_id", "Invalid processor_id format", `{"processor_id":""`+rest+`}`, `{"processor_id":"a b"`+rest+`}`, `{"processor_id":"a/b"`+rest+`}`, `{"processor_id":"é"`+rest+`}`,
			`{"processor_id":"`+strings.Repeat("p", 129)+`"`+rest+`}`, `{"processor_id":7`+rest+`}`, `{"processor_id":["p"]`+rest+`}`, `{"processor_id":{}`+rest+`}`, `{"processor_id":"p\u0000"`+rest+`}`, `{"processor_id":false`+rest+`}`)
		add(target, "worker_id", "Unknown field: worker_id", `{"processor_id":"p","worker_id":"w"`+rest+`}`)
		add(target, "Processor_id", "Unknown field: Processor_id", `{"Processor_id":"p"`+rest+`}`)
		add(target, "processor_id", "Duplicate field: processor_id", `{"processor_id":"p","processor_id":"p"`+rest+`}`)
		add(target, "", "it ends too early", `{"processor_id":"p"`)
		add(target, "", "an array, not a JSON object", `[]`)
		add(target+"?x=1", "x", "Unknown query parameter: x", `{"processor_id":"p"`+rest+`}`)
		add(strings.Replace(target, "/1/", "/0/", 1), "id", "Invalid id", `{"processor_id":"p"`+rest+`}`)
		cases = append(cases, badInput{strings.Replace(target, "POST", "PUT", 1), `{}`, wire.CodeMethodNotAllowed, "", "Method not allowed"})
		if call == "finalization/claim" || call == "finalization/extend" {
			for _, value := range []string{`0`, `-1`, `3601`, `1.5`, `"30"`, `1e2`, `true`, `99999999999999999999`, `[]`} {
				add(target, "timeout_seconds", "must be an integer from 1 to 3600", `{"processor_id":"p","timeout_seconds":`+value+`}`)
			}
			continue
		}
		add(target, "timeout_seconds", "Unknown field: timeout_seconds", `{"processor_id":"p","timeout_seconds":30`+rest+`}`)
	}
	add(path+"finalize", "outcome", "Missing required field: outcome", `{"processor_id":"p"}`, `{"processor_id":"p","outcome":null}`, `{"processor_id":"p","result":1}`)
	add(path+"finalize", "outcome", `must be "completed" or "failed"`, `{"processor_id":"p","outcome":"cancelled"}`, `{"processor_id":"p","outcome":""}`, `{"processor_id":"p","outcome":"Failed"}`, `{"processor_id":"p","outcome":1}`, `{"processor_id":"p","outcome":true}`)
	add(path+"finalize", "result", "result is only for the outcome completed", `{"processor_id":"p","outcome":"failed","result":1}`, `{"result":[],"processor_id":"p","outcome":"failed","error":"e"}`)
	add(path+"finalize", "error", "error is only for the outcome failed", `{"processor_id":"p","outcome":"completed","error":"e"}`, `{"processor_id":"p","error":"","outcome":"completed","result":1}`)
	add(path+"finalize", "error", "a string without U+0000", `{"processor_id":"p","outcome":"failed","error":1}`, `{"processor_id":"p","outcome":"failed","error":"a\u0000"}`)
	add(path+"finalize", "result", "must be nested at most 64 levels deep", `{"processor_id":"p","outcome":"completed","result":`+nested(64)+`}`)
	add(path+"finalize", "result_payload", "Unknown field: result_payload", `{"processor_id":"p","outcome":"completed","result_payload":"AA=="}`)
	for _, token := range []string{"0", "-1", "9007199254740992", "1.5", `"1"`} {
		add(path+"finalize", "claim_token", "an integer from 1 to 9007199254740991", `{"processor_id":"p","outcome":"completed","claim_token":`+token+`}`)
	}
	add("GET /api/tasks/1/finalization?wait_ms=1", "wait_ms", "Unknown query parameter: wait_ms", "")
	add("GET /api/tasks/01/finalization", "id", "Invalid id", "")
	for _, target := range []string{"GET /api/tasks/1/finalization/claim", "POST /api/tasks/1/finalization", "DELETE /api/tasks/1/finalize"} {
		cases = append(cases, badInput{target, `{}`, wire.CodeMethodNotAllowed, "", "Method not allowed"})
	}
	for _, target := range []string{"POST /api/tasks/1/finalization/", "POST /api/tasks/1/finalization/finalize", "POST /api/tasks/1/finalization%2Fclaim", "POST /api/tasks/1/finalize/claim", "GET /api/tasks/1/finalization/x"} {
		cases = append(cases, badInput{target, `{}`, wire.CodeNotFound, "", "No such path"})
	}
	return append(cases,
		badInput{path + "finalize", `{"processor_id":"p","outcome":"completed","result":"` + strings.Repeat("x", 1<<20) + `"}`, tl, "result", "result is larger than 1048576 bytes"},
		badInput{"GET /api/events?worker_id=a%20b", "", iw, "worker_id", "Invalid worker_id format"},
		badInput{"GET /api/events?worker_id=", "", iw, "worker_id", "Invalid worker_id format"},
	)
}
