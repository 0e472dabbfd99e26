// Command email sends a mail for each order of a shop and records in a database that it was sent. The database
// refuses the write of a worker whose claim is over.
//
//	claimq dev
//	go run ./examples/email sink
//	go run ./examples/email work
//	go run ./examples/email submit 17 ada@example.org
//
// sink stands for a mail server and prints the mails that it gets. work and submit connect to the nodes in
// CLAIMQ_ENDPOINTS. README.md says how to stop a worker for too long and see its write refused, and what no database
// can prevent.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/mail"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/claimq/claimq/client"
)

// taskType is the type of the tasks, and params holds their parameters.
const taskType = "confirmation"

type params struct {
	Order string `json:"order"`
	To    string `json:"to"`
}

var orderPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// check checks the parameters. Both the submitter and the worker call it, because others may submit too.
func (p params) check() error {
	if !orderPattern.MatchString(p.Order) {
		return fmt.Errorf("order is %q: it must be 1 to 64 of A-Z a-z 0-9 -", p.Order)
	}
	if a, err := mail.ParseAddress(p.To); err != nil || a.Address != p.To {
		return fmt.Errorf("%q is no address", p.To)
	}
	return nil
}

// key identifies the task, the row of the database and the mail. There must be only one of each.
func (p params) key() string { return "confirmation-" + p.Order }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "email:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say what to do: submit, work, book or sink")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	server := flags.String("smtp", "127.0.0.1:2525", "the mail server: where sink listens, and work sends")
	path := flags.String("db", "mail.db", "work, book: the database")
	lease := flags.Duration("lease", 0, "work: how long a claim lasts unless it is extended; 0: the server's default")
	concurrency := flags.Int("concurrency", 4, "work: how many mails it sends at a time")
	delay := flags.Duration("delay", 0, "sink: how long it takes to answer")
	once := flags.Bool("once", false, "sink: drop a mail whose Message-ID it has delivered")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "submit":
		return submit(ctx, flags.Args(), out)
	case "work":
		return work(ctx, &sender{book: book{path: *path}, server: *server, out: out}, client.WorkerConfig{Concurrency: *concurrency, Lease: *lease})
	case "book":
		return book{path: *path}.print(out)
	case "sink":
		listener, err := net.Listen("tcp", *server)
		if err != nil {
			return err
		}
		return (&sink{delay: *delay, once: *once, out: out}).serve(ctx, listener)
	}
	return fmt.Errorf("%q is none of submit, work, book and sink", args[0])
}

// submit is the call of a shop for a new order. The shop may repeat it, after a double click or a lost answer: the
// key makes it one task.
func submit(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("usage: submit ORDER ADDRESS")
	}
	p := params{Order: args[0], To: args[1]}
	if err := p.check(); err != nil {
		return err
	}
	task, err := client.NewTask(taskType, p)
	if err != nil {
		return err
	}
	task.IdempotencyKey = p.key()
	c, err := client.New(client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := c.Submit(ctx, task)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "task %s sends the confirmation of order %s\n", id, p.Order)
	return nil
}

// work sends mails until ctx ends.
func work(ctx context.Context, s *sender, cfg client.WorkerConfig) error {
	c, err := client.New(client.Config{})
	if err != nil {
		return err
	}
	defer c.Close()
	cfg.Logger = slog.Default()
	w, err := client.NewWorker(c, cfg)
	if err != nil {
		return err
	}
	client.Handle(w, taskType, s.handle)
	s.say("worker %s sends by %s", w.ID(), s.server)
	return w.Run(ctx)
}
