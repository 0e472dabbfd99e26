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
// A Worker does this for many tasks at a time and runs a handler for each:
//
//	w, err := client.NewWorker(c, client.WorkerConfig{Concurrency: 20})
//	client.Handle(w, "mail", func(ctx context.Context, job *client.Job[Mail]) error {
//		return send(ctx, job.Params)
//	})
//	err = w.Run(ctx) // until ctx ends
//
// A task may have steps: Task.Steps says which step waits for which, and SubmitWorkflow submits all of them at once.
// Workers claim steps like other tasks. The task ends with its last step or, with FinalizeClaim, when one of several
// processors ends it (FinalizationClaimer).
//
// # Repeats
//
// A node may die after it has done something and before it has said so. The client repeats a call until the call's
// time is over if nothing was written (no connection, or an answer that says so), or if a repeat is safe because the
// server recognizes it: reads, submits (each task has an idempotency key, a random one if need be), claims (each has
// a request id), calls with a claim's token, calls of a processor about a finalization, and calls that set a state:
// cancel, patch, the settings of a type. Calls that are not safe to repeat and may have been done return
// ErrOutcomeUnknown (a retry, a batch with a retry or a delete), and so do calls whose time was over before they
// could be settled.
//
// # Many at once
//
// Calls that many goroutines make at the same time share requests: with 8 submits under way, further ones wait until
// a request is answered and then go together in the next one. The same holds for claims of one task that do not wait,
// for settling calls, and for extends, each kind by itself. Each call has its own result, error and context. A
// context that ends before the call was sent withdraws it; after that the outcome is unknown, and the request goes on
// for the others.
//
// # Waiting
//
// A claim that waits makes requests of at most 6 s each, shorter for a short lease because a lease is counted from
// before the request that got it. These requests have their own connections, so that waiting claims never hold up
// extends.
//
// # TLS
//
// For https endpoints Config names the files with the authorities that sign the nodes' certificates and, if the nodes
// require it, with the client's own certificate. They are read again when they are renewed. Config.TLS is for other
// settings:
//
//	c, err := client.New(client.Config{
//		Endpoints: []string{"https://10.0.0.1:7400", "https://10.0.0.2:7400"},
//		CAFile:    "ca.crt", CertFile: "worker.crt", KeyFile: "worker.key",
//	})
//
// A node's certificate must be valid for the host of its endpoint and for the host of the URL that the node advertises,
// because calls follow the leader there.
//
// # Nodes
//
// Any node answers any call; a follower forwards it to the leader. The client asks for the leader's address and then
// calls the leader directly. If that fails, it tries its endpoints in turn, and for a few seconds lets the nodes
// forward its calls.
//
// # Errors
//
// A refusal by the server is an *Error: errors.Is finds the sentinel of its code (ErrStaleClaim, ErrNoTasks, ...),
// errors.As its details and an advice. ErrOutcomeUnknown means that the call may have been done, or may still be. To
// find out, repeat it with the same key, request id or claim.
//
// # Tests
//
// Package clienttest provides an in-memory server for the tests of programs that use this package.
//
// docs/api.md describes the API that this package uses, docs/workers.md how to write workers.
package client
