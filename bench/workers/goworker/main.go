// Command goworker is a Worker of the Go client whose handler does nothing, to compare
// claimq work --serve with.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/claimq/claimq/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "goworker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := client.New(client.Config{Endpoints: strings.Split(os.Getenv("CLAIMQ_ENDPOINTS"), ",")})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 256})
	if err != nil {
		return err
	}
	client.Handle(w, "bench", func(context.Context, *client.Job[[]byte]) error { return nil })
	return w.Run(ctx)
}
