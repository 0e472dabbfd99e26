// Package client is the Go client of a claimq cluster.
//
// Producers submit tasks, workers claim them and settle the claims:
//
//	c, err := client.New(client.Config{Endpoints: []string{"http://127.0.0.1:7400"}})
//	...
//	defer c.Close()
//	task, err := client.NewTask("mail", Mail{To: "ada@example.org"})
//	id, err := c.Submit(ctx, task)
//
//	claim, err := c.ClaimNext(ctx, client.ClaimRequest{WorkerID: "w1", Types: []string{"mail"}, Wait: time.Minute})
//	if errors.Is(err, client.ErrNoTasks) { ... } // none came in that time
//	work, stop := claim.KeepAlive(ctx) // ends when the claim is lost
//	result, err := send(work, claim.Task.Payload)
//	stop()
//	err = claim.Complete(ctx, result)
//
// A Worker does this for many tasks at a time, and runs a handler for each:
//
//	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 20})
//	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
//		return send(ctx, job.Params)
//	})
//	err = w.Run(ctx) // until ctx ends
//
// A task may have steps: its Task.Steps say what waits for what, SubmitWorkflow
// submits them in one step. Workers claim the steps as they claim tasks, and the
// task ends with its last step, or, if it says FinalizeClaim, when one of several
// processors ends it (FinalizationClaimer).
//
// # Repeats
//
// A node may die between doing something and saying so. The client repeats a
// call until the call's time is over when nothing was written (no connection,
// or an answer that says so), and when a repeat is safe, because the server
// recognizes it: reads, a submit (each task has an idempotency key, a random
// one if need be), a claim (each has a request id), what a claim's holder does
// with its token, what a processor does with a finalization, and what asks for a
// state: cancel, patch, the settings of a type. What is not safe to repeat and may
// have been done is ErrOutcomeUnknown (a retry, a batch with a retry or a delete),
// and so is a call whose time was over before it could be settled.
//
// # Many at once
//
// Calls that many goroutines make at the same time go to the server together: beyond 8
// submits under way, those that come while a request is out go in the next one, and so do
// claims of one task that do not wait, settling calls, and extends, each kind by itself.
// Each call has its own result and its own error, and its context is its own: one that ends
// before the call was sent takes it back; after that the outcome is unknown, and the
// request goes on for the others.
//
// # Waiting
//
// A claim that waits asks in requests of at most 6 s, shorter ones for a short
// lease: a lease is counted from before the request that got it. These requests
// have connections of their own, so that however many claims wait, extends are
// not held up.
//
// # TLS
//
// For https endpoints Config names the files of the authorities whose signature on the nodes'
// certificates to trust, and of the client's own certificate where the nodes want one. They are
// read again when somebody renews them; Config.TLS is for what else there is to say:
//
//	c, err := client.New(client.Config{
//		Endpoints: []string{"https://10.0.0.1:7400", "https://10.0.0.2:7400"},
//		CAFile:    "ca.crt", CertFile: "worker.crt", KeyFile: "worker.key",
//	})
//
// A node's certificate is checked for the host of its endpoint, and of the URL that
// it advertises, to which calls follow the leader.
//
// # Nodes
//
// Any node answers any call; one that does not lead passes it on. The client
// asks to be told the leader's address and then talks to the leader. If that
// fails it goes round its endpoints, and for a few seconds lets the nodes pass
// the calls on.
//
// # Errors
//
// What the server refuses is an *Error: errors.Is finds the sentinel of its code
// (ErrStaleClaim, ErrNoTasks, ...), errors.As its details and what to do about
// it. ErrOutcomeUnknown leaves open whether the call was done, or will be: the
// same call again, with the same key, request id or claim, settles it.
//
// # Tests
//
// Package clienttest has a server in memory for the tests of programs that use
// this package.
//
// The package needs the standard library only. docs/api.md has the calls behind
// it, docs/workers.md what a worker has to know.
package client
