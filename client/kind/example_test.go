package kind_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/client/kind"
)

// Invoice holds the parameters of the kind Invoices.
type Invoice struct {
	Order string `json:"order" claimq:"unique"`
	Lang  string `json:"lang"`
}

// Receipt is its result.
type Receipt struct {
	File string `json:"file"`
}

// Invoices is declared in a package that producers and workers share.
var Invoices = kind.New[Invoice, Receipt]("invoice", func(t *client.Task) {
	t.MaxAttempts = 5
	t.Retention = 30 * 24 * time.Hour
})

func Example() {
	server := clienttest.New(example{})
	defer server.Close()
	c := server.Client()
	ctx, stop := context.WithCancel(context.Background())

	// The producer.
	first, err := Invoices.Submit(ctx, c, Invoice{Order: "17", Lang: "en"})
	if err != nil {
		panic(err)
	}
	again, err := Invoices.Submit(ctx, c, Invoice{Order: "17", Lang: "en"}, func(t *client.Task) { t.Priority = 10 })
	if err != nil {
		panic(err)
	}
	fmt.Println("the same task:", again.ID == first.ID, "new:", again.Created)

	// The worker.
	w, err := client.NewWorker(c, client.WorkerConfig{})
	if err != nil {
		panic(err)
	}
	Invoices.Handle(w, func(_ context.Context, job *client.Job[Invoice]) (Receipt, error) {
		return Receipt{File: job.Params.Order + "." + job.Params.Lang + ".pdf"}, nil
	})
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	// A program that waits for the result.
	receipt, err := Invoices.Result(ctx, c, first.ID)
	fmt.Println(receipt.File, err)
	stop()
	if err := <-stopped; err != nil {
		panic(err)
	}
	// Output:
	// the same task: true new: false
	// 17.en.pdf <nil>
}

// Tasks of a kind can be submitted together, as follow-ups, or as steps.
func ExampleKind_Task() {
	var tasks []client.Task
	for _, order := range []string{"17", "18"} {
		t, err := Invoices.Task(Invoice{Order: order})
		if err != nil {
			panic(err)
		}
		tasks = append(tasks, t)
	}
	for _, t := range tasks { // for example for Client.SubmitMany
		fmt.Println(t.TaskType, t.IdempotencyKey, t.MaxAttempts, string(t.Payload))
	}
	// Output:
	// invoice invoice{"order":"17"} 5 {"order":"17","lang":""}
	// invoice invoice{"order":"18"} 5 {"order":"18","lang":""}
}

// At most one task at a time: the key is free again when the task has ended.
func ExampleNew_uniqueWhileActive() {
	type Rebuild struct {
		Index string `json:"index" claimq:"unique"`
	}
	rebuilds := kind.New[Rebuild, kind.None]("rebuild", func(t *client.Task) { t.Unique = client.UniqueActive })
	server := clienttest.New(example{})
	defer server.Close()
	c, ctx := server.Client(), context.Background()
	for range 2 {
		s, err := rebuilds.Submit(ctx, c, Rebuild{Index: "products"})
		fmt.Println("new:", s.Created, err)
	}
	if _, err := c.Cancel(ctx, "1"); err != nil {
		panic(err)
	}
	s, err := rebuilds.Submit(ctx, c, Rebuild{Index: "products"})
	fmt.Println("new:", s.Created, err)
	_, err = rebuilds.Result(ctx, c, "1")
	fmt.Println(errors.Is(err, client.ErrTaskCancelled))
	// Output:
	// new: true <nil>
	// new: false <nil>
	// new: true <nil>
	// true
}

// example stands in for a testing.T, which an example does not have.
type example struct{ testing.TB }

func (example) Helper()                           {}
func (example) Cleanup(func())                    {}
func (example) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
