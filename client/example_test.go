package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/claimq/claimq/client"
)

// exampleServer stands in for a cluster and knows one task.
func exampleServer() *httptest.Server {
	mux := http.NewServeMux()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	const task = `{"id":17,"task_type":"mail","params":{"to":"ada"},"status":%q,"worker_id":"w1","claim_token":5,"lease_remaining_ms":30000}`
	one := func(status string) string {
		return fmt.Sprintf(`{"success":true,"created":true,"task":`+task+`}`, status)
	}
	claimed := false
	mux.HandleFunc("POST /api/tasks", func(w http.ResponseWriter, r *http.Request) {
		var many struct{ Tasks []json.RawMessage }
		if json.NewDecoder(r.Body).Decode(&many); many.Tasks != nil {
			answer(200, `{"success":true,"failed":1,"results":[{"id":17,"created":true},{"error":"Invalid task_type","code":"invalid_task"}]}`)(w, r)
			return
		}
		answer(201, one("pending"))(w, r)
	})
	mux.HandleFunc("POST /api/tasks/claim", func(w http.ResponseWriter, r *http.Request) {
		if claimed {
			answer(404, `{"success":false,"error":"No pending tasks available","code":"no_pending_tasks"}`)(w, r)
			return
		}
		claimed = true
		answer(200, one("claimed"))(w, r)
	})
	mux.HandleFunc("POST /api/tasks/17/{verb}", answer(200, one("completed")))
	mux.HandleFunc("GET /api/tasks/17", answer(200, one("completed")))
	mux.HandleFunc("GET /api/tasks", answer(200, `{"success":true,"tasks":[`+fmt.Sprintf(task, "completed")+`],"next_cursor":null}`))
	return httptest.NewServer(mux)
}

type mail struct {
	To string `json:"to"`
}

func ExampleClient_Submit() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	task, err := client.NewTask("mail", mail{To: "ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	task.IdempotencyKey = "welcome-ada" // a repeated submit makes no second task
	id, err := c.Submit(ctx, task)
	fmt.Println(id, err)
	// Output: 17 <nil>
}

func ExampleClient_ClaimNext() {
	server := exampleServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	// One round of a worker.
	work := func(ctx context.Context) error {
		claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Types: []string{"mail"}})
		if errors.Is(err, client.ErrNoTasks) {
			fmt.Println("nothing to do")
			return nil
		}
		if err != nil {
			return err
		}
		workCtx, stop := claim.KeepAlive(ctx) // ends when the lease is lost
		defer stop()
		result, err := send(workCtx, claim.Task.Payload)
		if err != nil {
			return claim.Fail(ctx, err)
		}
		return claim.Complete(ctx, result)
	}
	fmt.Println(work(context.Background()))
	fmt.Println(work(context.Background()))
	// Output:
	// sent {"to":"ada"}
	// <nil>
	// nothing to do
	// <nil>
}

func send(_ context.Context, payload []byte) ([]byte, error) {
	fmt.Println("sent", string(payload))
	return []byte(`{"message_id":1}`), nil
}

func ExampleClient_SubmitMany() {
	server := exampleServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	results, err := c.SubmitMany(context.Background(), []client.Task{
		{TaskType: "mail", Payload: []byte(`{"to":"ada"}`)},
		{TaskType: "no spaces", Payload: []byte(`{"to":"bob"}`)},
	})
	fmt.Println(errors.Is(err, client.ErrInvalidTask))
	for _, r := range results {
		fmt.Printf("%q created=%v err=%v\n", r.ID, r.Created, r.Err)
	}
	// Output:
	// true
	// "17" created=true err=<nil>
	// "" created=false err=Invalid task_type (invalid_task)
}

func ExampleClient_Tasks() {
	server := exampleServer()
	defer server.Close()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	for task, err := range c.Tasks(context.Background(), client.Filter{TaskType: "mail"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(task.ID, task.Status, string(task.Payload))
	}
	// Output: 17 completed {"to":"ada"}
}

// TaskManager is all that a program needs if it addresses tasks by id.
func ExampleTaskManager() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	c, err := client.New(client.Config{Endpoints: []string{server.URL}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	var tasks client.TaskManager = c
	if err := tasks.Claim(ctx, "17", "w1"); err != nil {
		fmt.Println(err)
		return
	}
	if err := tasks.Complete(ctx, "17", []byte(`"done"`)); err != nil {
		fmt.Println(err)
		return
	}
	task, err := tasks.Get(ctx, "17")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status)
	// Output: completed
}
