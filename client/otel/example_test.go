package claimqotel_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	claimqotel "github.com/claimq/claimq/client/otel"
)

func Example() {
	s := clienttest.New(example{})
	defer s.Close()
	spans := tracetest.NewSpanRecorder() // in a program: an exporter
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))

	c := claimqotel.Wrap(s.Client(), provider)
	id, err := c.Submit(context.Background(), client.Task{TaskType: "mail", Payload: []byte(`"ada"`)})
	if err != nil {
		panic(err)
	}
	w, err := client.NewWorker(c.Client, client.WorkerConfig{})
	if err != nil {
		panic(err)
	}
	w.Use(claimqotel.Middleware(provider))
	client.Handle(w, "mail", func(context.Context, *client.Job[string]) error { return nil })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	s.Await(id, client.StatusCompleted)
	stop()
	if err := <-ended; err != nil {
		panic(err)
	}
	for _, span := range spans.Ended() {
		fmt.Println(span.Name(), "links:", len(span.Links()))
	}
	// Output:
	// submit mail links: 0
	// process mail links: 1
}

// example stands in for a testing.T, which an example does not have.
type example struct{}

func (example) Helper()                           {}
func (example) Cleanup(func())                    {}
func (example) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
