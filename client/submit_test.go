package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// acceptAll accepts all tasks of a submit.
func acceptAll(sizes *[]int) reply {
	next := 1
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Tasks []json.RawMessage }
		if err := json.Unmarshal([]byte(r.Context().Value(bodyKey{}).(string)), &body); err != nil {
			panic(err)
		}
		*sizes = append(*sizes, len(body.Tasks))
		results := make([]string, len(body.Tasks))
		for i := range results {
			results[i] = fmt.Sprintf(`{"id":%d,"created":true}`, next)
			next++
		}
		fmt.Fprintf(w, `{"success":true,"results":[%s],"failed":0}`, strings.Join(results, ","))
	}
}

func TestSubmit_replaced(t *testing.T) {
	t.Parallel()
	s, c := talkInMemory(t,
		says(200, `{"success":true,"task":{"id":7},"created":false,"replaced":true}`),
		says(200, `{"success":true,"results":[{"id":7,"created":false,"replaced":true}],"failed":0}`),
		says(200, `{"success":true,"results":[{"success":true,"task":{"id":7,"status":"pending"},"created":false,"replaced":true}]}`),
	)
	defer c.Close()
	task := Task{Payload: []byte("1"), IdempotencyKey: "k", Unique: UniqueReplace}
	want := Submitted{ID: "7", Replaced: true}
	one, err := c.SubmitTask(t.Context(), task)
	if err != nil || one != want {
		t.Errorf("one: %+v, %v", one, err)
	}
	if got := s.requests()[0].field(t, "unique"); got != "replace" {
		t.Errorf("unique is %v", got)
	}
	many, err := c.SubmitMany(t.Context(), []Task{task})
	if err != nil || len(many) != 1 || many[0] != want {
		t.Errorf("many: %+v, %v", many, err)
	}
	results, err := c.Batch(t.Context(), SubmitOp(task))
	if err != nil || len(results) != 1 || !results[0].Replaced || results[0].Created {
		t.Errorf("batch: %+v, %v", results, err)
	}
}

func TestSubmitMany_staysBelowTheServersBounds(t *testing.T) {
	t.Parallel()
	t.Run("items", func(t *testing.T) {
		t.Parallel()
		var sizes []int
		_, c := talkInMemory(t, acceptAll(&sizes))
		defer c.Close()
		tasks := make([]Task, 2500)
		for i := range tasks {
			tasks[i].Payload = []byte("1")
		}
		got, err := c.SubmitMany(t.Context(), tasks)
		if err != nil || len(got) != 2500 || got[2499].ID != "2500" || !got[0].Created {
			t.Errorf("got %d results, %v", len(got), err)
		}
		if diff := cmp.Diff([]int{1000, 1000, 500}, sizes); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		var sizes []int
		s, c := talkInMemory(t, acceptAll(&sizes)) // over a network a busy machine could be too slow
		defer c.Close()
		tasks := make([]Task, 10)
		for i := range tasks {
			tasks[i].Payload = []byte(strings.Repeat("\xff", 1<<20)) // 4/3 of it in base64
		}
		if _, err := c.SubmitMany(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{5, 5}, sizes); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		for _, r := range s.requests() {
			if len(r.body) > 8<<20 {
				t.Errorf("a body has %d bytes", len(r.body))
			}
		}
	})
}

func TestSubmitMany_errorsOfItems(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(200, `{"success":true,"failed":1,"results":[{"id":1,"created":false},{"error":"bad type","code":"invalid_task"},{"id":3,"created":false}]}`))
	got, err := c.SubmitMany(t.Context(), []Task{
		{Payload: []byte("1")},
		{}, // refused by the client, not sent
		{Payload: []byte("1"), TaskType: "no spaces"},
		{Payload: []byte("1"), IdempotencyKey: "taken"},
	})
	if !errors.Is(err, ErrInvalidTask) || !strings.Contains(err.Error(), "task 2 of 4") || !strings.Contains(err.Error(), "task 3 of 4: bad type") {
		t.Errorf("got %v", err)
	}
	want := []Submitted{{ID: "1", Created: true}, {Err: ErrInvalidTask}, {Err: ErrInvalidTask}, {ID: "3"}}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if n := strings.Count(s.requests()[0].body, "params"); n != 3 {
		t.Errorf("%d tasks were sent, want 3", n)
	}
}

func TestSubmitMany_stopsAtARequestThatFails(t *testing.T) {
	t.Parallel()
	s, c := talk(t, says(403, `{"success":false,"error":"no","code":"forbidden"}`))
	tasks := make([]Task, 1500)
	for i := range tasks {
		tasks[i].Payload = []byte("1")
	}
	got, err := c.SubmitMany(t.Context(), tasks)
	if !errors.Is(err, ErrForbidden) || !errors.Is(got[0].Err, ErrForbidden) || !errors.Is(got[1499].Err, ErrForbidden) {
		t.Errorf("got %v and %v", got[0], got[1499])
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "submit tasks 1 to 1000 of 1500: ") || !strings.HasPrefix(lines[1], "submit tasks 1001 to 1500 of 1500: not sent: ") {
		t.Errorf("the error has %d lines:\n%s", len(lines), err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("got %d requests, want 1", n)
	}
	if got, err := c.SubmitMany(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of none: got %v, %v", got, err)
	}
}

// The refusal of one of many tasks is complete, without its index in the request, and a taken key is told from a
// repeat.
func TestSubmitMany_saysWhatTheServerSays(t *testing.T) {
	t.Parallel()
	_, c := talk(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-ID", "R")
		says(200, `{"success":true,"failed":1,"results":[{"error":"Invalid tasks[0].priority: x","code":"invalid_task","message":"Correct it","field":"tasks[0].priority"},`+
			`{"id":2,"created":false,"same_request":false},{"id":3,"created":false}]}`)(w, r)
	})
	task := Task{Payload: []byte("1"), IdempotencyKey: "k"}
	got, err := c.SubmitMany(t.Context(), []Task{task, task, task})
	var e *Error
	if !errors.As(err, &e) || e.Text != "Invalid priority: x" || e.Advice != "Correct it" || e.RequestID != "R" || !strings.Contains(string(e.Details), `"field":"priority"`) {
		t.Errorf("refused: %+v", e)
	}
	if !got[1].Differs || got[2].Differs {
		t.Errorf("got %+v and %+v", got[1], got[2])
	}
}

// A submit tells whether its task is new and whether its key belongs to another task, both as a call and as an op.
func TestSubmitTask_tellsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	const task = `"task":{"id":17,"status":"pending"}`
	task1 := Task{Payload: []byte("1"), IdempotencyKey: "k"}
	for answer, want := range map[string]Submitted{
		`"created":true`:                       {ID: "17", Created: true},
		`"created":false`:                      {ID: "17"},
		`"created":false,"same_request":false`: {ID: "17", Differs: true},
	} {
		body := `{"success":true,` + task + `,` + answer + `}`
		_, c := talk(t, says(200, body), says(200, `{"success":true,"results":[`+body+`]}`))
		if got, err := c.SubmitTask(t.Context(), task1); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", answer, got, err)
		}
		got, err := c.Batch(t.Context(), SubmitOp(task1))
		if err != nil || got[0].Created != want.Created || got[0].Differs != want.Differs {
			t.Errorf("%s as an op: got %+v, %v", answer, got, err)
		}
	}
	// A random key belongs to no other task, so that its task is new.
	_, c := talk(t, says(200, `{"success":true,`+task+`,"created":false}`))
	if got, err := c.SubmitTask(t.Context(), Task{Payload: []byte("1")}); err != nil || !got.Created {
		t.Errorf("without a key: got %+v, %v", got, err)
	}
}
