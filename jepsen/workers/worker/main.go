// Command worker is a worker process of the harness: it handles tasks with the
// client library as any program would, and keeps a diary of what its handlers saw
// and did. Package workers starts it, stops it and cuts it off.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

// config is what the command line says.
type config struct {
	id, endpoints, store, diary string
	bare                        bool
	lease, stopWait             time.Duration
	concurrency                 int
}

func main() {
	var cfg config
	flag.StringVar(&cfg.id, "id", "", "the worker's id")
	flag.StringVar(&cfg.endpoints, "endpoints", "", "base URLs of the nodes, separated by commas")
	flag.StringVar(&cfg.store, "store", "", "base URL of what the work writes to")
	flag.StringVar(&cfg.diary, "diary", "", "where the diary goes")
	flag.BoolVar(&cfg.bare, "bare", false, "claims and KeepAlive in place of a client.Worker")
	flag.DurationVar(&cfg.lease, "lease", time.Second, "of its claims")
	flag.DurationVar(&cfg.stopWait, "stop-wait", 2*time.Second, "for handlers, at SIGTERM")
	flag.IntVar(&cfg.concurrency, "concurrency", 4, "handlers at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, cfg)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, cfg config) error {
	d, err := diary.Create(cfg.diary)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	c, err := client.New(client.Config{Endpoints: strings.Split(cfg.endpoints, ",")})
	if err != nil {
		return errors.Join(err, d.Close())
	}
	h := newHand(cfg, d)
	work := h.runWorker
	if cfg.bare {
		work = h.runBare
	}
	stopped := diary.Line{Event: diary.Stopped}
	if err := work(ctx, c, log); err != nil {
		stopped.Text = err.Error() // which tasks could not be settled, say
	}
	stopped.At = diary.Now()
	d.Write(stopped)
	return errors.Join(c.Close(), d.Close())
}
