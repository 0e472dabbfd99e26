// Command worker is a worker process of the harness: it handles tasks with the client
// library like any program, and keeps a diary of what its handlers saw and did. Package
// workers starts it, stops it and cuts it off.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/jepsen/workers/diary"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, told string) error {
	var cfg diary.Config
	if err := json.Unmarshal([]byte(told), &cfg); err != nil {
		return err
	}
	d, err := diary.Create(cfg.Diary)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, cfg.Way)
	}
	c, err := client.New(client.Config{Endpoints: cfg.Nodes, Dial: dial})
	if err != nil {
		return errors.Join(err, d.Close())
	}
	h := newHand(cfg, d)
	work := h.runWorker
	if cfg.Bare {
		work = h.runBare
	}
	if err := work(ctx, c, log); err != nil {
		log.Warn("stopped", "err", err) // the error lists the tasks that could not be settled
	}
	return errors.Join(c.Close(), d.Close())
}
