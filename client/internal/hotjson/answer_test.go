package hotjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/claimq/claimq/api/wire"
)

// hotTask is a claimed task in an answer.
const hotTask = `{"id":17,"task_type":"mail","params":{ "to" : "ada\"}" },"priority":-2,"max_attempts":3,"attempts":1,"idempotency_key":"k\u00e9",` +
	`"status":"claimed","worker_id":"w1","claim_token":5,"claimed_at":"2026-01-02T03:04:05.678Z","lease_expires_at":"2026-01-02T03:04:35.678Z",` +
	`"lease_remaining_ms":30000,"created_at":"2026-01-02T03:04:00.000Z","updated_at":"2026-01-02T03:04:06.000Z","completed_at":null,"cancel_requested":false}`

// submitted are fields that only some tasks have.
const submitted = `"lease_ms":5000,"retention_ms":-1,"unique":"active","group":"g","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",` +
	`"labels":{"team":"a","\u00e9":"\"b\""}`

// answers are bodies, and whether they are valid answers.
var answers = map[string]bool{
	`{"success":true,"task":` + hotTask + `,"message":"Task claimed successfully"}`:                                                                                         true,
	`{"success":true,"tasks":[` + hotTask + `,` + hotTask + `],"repeated":true}`:                                                                                            true,
	`{"success":true,"task":{"id":1,` + submitted + `},"tasks":[{"id":2,` + strings.Replace(submitted, `\u00e9`, "e", 1) + `},{"id":3,"labels":null,"retention_ms":null}]}`: true,
	`{"success":true,"tasks":[{"retention_ms":"1"}]}`:                                                                                                                       false,
	`{"success":true,"tasks":[{"labels":["a"]}]}`:                                                                                                                           false,
	`{"success":true,"tasks":[{"labels":{"a":1}}]}`:                                                                                                                         false,
	`{"success":true,"task":{"id":1},"created":false,"replaced":true}`:                                                                                                      true,
	`{"success":true,"tasks":[]}`:                                                                                                                                           true,
	`{"success":true,"task":{"id":1},"claimed":{"task":` + hotTask + `}}`:                                                                                                   true,
	`{"success":true,"task":{"id":1},"claimed":{"task":null}}`:                                                                                                              true,
	`{"success":true,"task":{"id":1},"claimed":{"tasks":[` + hotTask + `],"later":[1]}}`:                                                                                    true,
	`{"success":true,"task":{"id":1},"claimed":null,"repeated":true}`:                                                                                                       true,
	`{"success":true,"task":{"id":1},"lease_remaining_ms":30000,"cancel_requested":true}`:                                                                                   true,
	`{"success":true,"task":{"id":1},"created":false,"same_request":false}`:                                                                                                 true,
	`{"success":true,"task":{"id":1,"payload":"AP8=","labels":{"a":"b"}},"later":{"a":[]}}`:                                                                                 true,
	`{"success":true,"task":{"id":1,"claim_state":"live","completed_at":"2026-01-02T03:04:06.000Z","worker_id":null,"claim_token":null}}`:                                   true,
	`{"success":true,"task":null}`:                                                                                                                                          true,
	`{"success":false,"error":"E"}`:                                                                                                                                         true,
	` { "success" : true , "tasks" : [ { "id" : 1 } ] } `:                                                                                                                   true,
	`{}`:                                    true,
	`{"success":true`:                       false,
	`{"success":true}}`:                     false,
	`{"success":1}`:                         false,
	`{"success":true,"tasks":{}}`:           false,
	`{"success":true,"tasks":[{"id":1.5}]}`: false,
	`{"success":true,"tasks":[{"id":-1}]}`:  false,
	`{"success":true,"tasks":[{"id":99999999999999999999}]}`:         false,
	`{"success":true,"tasks":[{"priority":2147483648}]}`:             false,
	`{"success":true,"tasks":[{"created_at":"yesterday"}]}`:          false,
	`{"success":true,"tasks":[{"params":{"a":1}]}`:                   false,
	`{"success":true,"claimed":{"task":{"id":1,"claimed_at":17}}}`:   false,
	`{"success":true,"claimed":{"task":{"id":1,"worker_id":["a"]}}}`: false,
	`{"success":true,"lease_remaining_ms":"30000"}`:                  false,
	``:   false,
	`[]`: false,
}

// Answer decodes like encoding/json.
func TestAnswer(t *testing.T) {
	t.Parallel()
	room := &Room{}
	for body, good := range answers {
		got, ok := Answer([]byte(body), true, nil)
		if again, too := Answer([]byte(body), true, room); too != ok || !cmp.Equal(again, got, cmpopts.EquateEmpty()) {
			t.Errorf("%s: into a room %v, %s", body, too, cmp.Diff(got, again))
		}
		var want wire.Answer
		if err := json.Unmarshal([]byte(body), &want); (err == nil) != good || ok != good {
			t.Errorf("%s: read %v, by encoding/json %v, want %v", body, ok, err, good)
			continue
		}
		if !good {
			want = wire.Answer{}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: -want +got\n%s", body, diff)
		}
	}
}

// Without tasks only the task that the call is about is left out.
func TestAnswer_withoutTheTask(t *testing.T) {
	t.Parallel()
	got, ok := Answer([]byte(`{"success":true,"task":`+hotTask+`,"claimed":{"task":`+hotTask+`}}`), false, nil)
	if !ok || got.Task != nil || got.Claimed == nil || got.Claimed.Task.ID != 17 {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := Answer([]byte(`{"success":true,"task":{"id":[}}`), false, nil); ok {
		t.Error("brackets that do not match were read")
	}
}

// A decoded task does not keep the body of a large answer in memory.
func TestAnswer_sharesNothing(t *testing.T) {
	t.Parallel()
	body := []byte(`{"success":true,"task":` + hotTask + `}`)
	got, _ := Answer(body, true, nil)
	for i := range body {
		body[i] = 'x'
	}
	if s := string(got.Task.Params) + got.Task.TaskType + got.Task.Status + *got.Task.WorkerID; s != `{ "to" : "ada\"}" }mailclaimedw1` {
		t.Errorf("after the body has changed: %s", s)
	}
}

// A reused Room keeps nothing of its previous task, and leaves that task's strings and slices intact.
func TestRoom(t *testing.T) {
	room := &Room{}
	first, ok := Answer([]byte(`{"success":true,"claimed":{"task":`+hotTask+`}}`), true, room)
	if !ok {
		t.Fatal("not read")
	}
	before := *first.Claimed.Task
	second, ok := Answer([]byte(`{"success":true,"claimed":{"task":{"id":18,"task_type":"mall","params":[2],"worker_id":"w2"}}}`), true, room)
	if !ok {
		t.Fatal("not read")
	}
	want := wire.Task{ID: 18, TaskType: "mall", Params: json.RawMessage("[2]"), WorkerID: new("w2")}
	if diff := cmp.Diff(want, *second.Claimed.Task); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s := before.TaskType + before.IdempotencyKey + string(before.Params); s != `mailké{ "to" : "ada\"}" }` {
		t.Errorf("what was read before is %s", s)
	}
	body := []byte(`{"success":true,"claimed":{"task":` + strings.Replace(hotTask, `\u00e9`, "e", 1) + `}}`)
	Answer(body, true, room)
	if allocs := testing.AllocsPerRun(100, func() { Answer(body, true, room) }); allocs > 4 {
		t.Errorf("%v allocations", allocs)
	}
}

// A frequent task is decoded without encoding/json, so none of its fields may need that.
func TestTask_isHot(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() {
		Answer([]byte(`{"success":true,"tasks":[`+strings.Replace(hotTask, `\u00e9`, "e", 1)+`]}`), true, nil)
	})
	if allocs > 12 {
		t.Errorf("%v allocations", allocs)
	}
	task := strings.Replace(hotTask+submitted, `}"lease_ms"`, `,"lease_ms"`, 1) + "}"
	body := []byte(`{"success":true,"tasks":[` + strings.ReplaceAll(strings.ReplaceAll(task, `\u00e9`, "e"), `\"b\"`, "b") + `]}`)
	if allocs := testing.AllocsPerRun(100, func() { Answer(body, true, nil) }); allocs > 20 {
		t.Errorf("%v allocations with what only some tasks have: %s", allocs, body)
	}
}

func TestSubmitResult(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":17,"created":true}`, `{"id":17,"created":false,"same_request":false}`, `{"error":"E","code":"invalid_task","message":"M","field":"tasks[3].priority"}`,
		`{"id":"x"}`, `{"id":1`, `{"id":1}]`, `{"created":null}`, `{}`,
	} {
		var want wire.SubmitResult
		err := json.Unmarshal([]byte(body), &want)
		got, ok := SubmitResult([]byte(body))
		if ok != (err == nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v, %v", body, got, ok, want, err)
		}
	}
}

// FuzzAnswer checks that every body that encoding/json accepts is decoded alike.
func FuzzAnswer(f *testing.F) {
	for body := range answers {
		f.Add([]byte(body))
	}
	room := &Room{} // reused, with the content of the last answer
	f.Fuzz(func(t *testing.T, body []byte) {
		var want wire.Answer
		if !json.Valid(body) || json.Unmarshal(body, &want) != nil {
			return
		}
		if got, ok := Answer(body, true, room); !ok || !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
			t.Errorf("%s: %v\n%s", body, ok, cmp.Diff(want, got))
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	body := []byte(`{"success":true,"task":` + hotTask + `,"claimed":{"task":` + hotTask + `}}`)
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			Answer(body, false, nil)
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var a wire.Answer
			if json.Unmarshal(body, &a) != nil {
				b.Fatal("no answer")
			}
		}
	})
}
