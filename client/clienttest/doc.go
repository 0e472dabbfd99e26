// Package clienttest provides a claimq server for the tests of programs that use package client. It keeps its tasks
// in memory and starts in a millisecond. Its time moves only when the test moves it or, with Ticking, with the
// program's time.
//
//	func TestMail(t *testing.T) {
//		s := clienttest.New(t)
//		w, err := client.NewWorker(s.Client(), client.WorkerConfig{})
//		...
//		client.Handle(w, "mail", sendMail)
//		go w.Run(ctx)
//
//		id, err := s.Client().Submit(ctx, task) // with a backoff of a minute
//		s.Await(id, client.StatusScheduled)     // sendMail has failed
//		s.Advance(time.Minute)
//		s.Await(id, client.StatusCompleted) // and was called again
//	}
//
// It runs the state machine and the HTTP API of a real node over connections within the process, so it accepts,
// refuses and answers as a cluster does; only the replication is missing. Server.URL opens a loopback port for
// clients without a Dial. Each test can have its own server, in parallel.
//
// # Time
//
// The clock begins at Start or StartAt, and stands still. Advance moves it forward, and everything that becomes due
// happens in order, each at its time: leases expire, tasks that wait for a backoff or their RunAt become pending,
// tasks that expire fail, schedules submit a task for every slot, ended tasks are removed, rate limits refill. When
// Advance returns, all of this is done, and waiting claims have got their tasks.
//
// Times that the program passes to the server, such as Task.RunAt, are compared with this clock. Take them from Now,
// or use StartAt(time.Now()) if the program uses the clock of its machine.
//
// Calls wait in the program's time, as with a cluster: ClaimRequest.Wait, a context's deadline, a handler's timeout,
// the pauses between the tries of a call.
//
// # In a bubble
//
// In a bubble of testing/synctest the program's time is virtual, and with Ticking the server's clock follows it.
// Leases, backoffs and timeouts then pass together, in no time, while the test sleeps:
//
//	synctest.Test(t, func(t *testing.T) {
//		s := clienttest.New(t, clienttest.Ticking())
//		... // a Worker of s.Client() runs
//		id, err := s.Client().Submit(ctx, task) // with a backoff of an hour
//		time.Sleep(61 * time.Minute)
//		s.Await(id, client.StatusCompleted) // in the second attempt
//	})
//
// Make the server, its clients and workers in the bubble. Do not call URL there: network connections do not count as
// waiting, so that time would stand still. Stop the worker before the test function returns, or in its Cleanup.
//
// # What was submitted
//
// WantSubmitted asserts the params of the tasks of a kind, Submitted returns them, and Server.Tasks returns the tasks
// of a type.
//
// # Leases
//
// A worker counts its lease in the program's time: Advance does not change Claim.Deadline or end the handler's
// context. For the server the claim is over once the test has advanced past the lease, as if the worker had been
// paused: another worker can claim the task, and the next call with the old claim, an extend or a settling call, gets
// ErrStaleClaim, or ErrWrongWorker if another worker has the task by then. A Worker notices at its next extend, after
// a third of the lease, and ends the handler's context with ErrLeaseLost. If it has a free slot, it may claim the
// task again before that.
//
// # Limits
//
// The same calls in the same order give the same ids and tokens. The order of concurrent calls is undefined.
//
// Nothing is kept when it closes. It is a single node, always the leader: calls that change the members or restore a
// backup are refused with the code membership_refused. It needs no API key and accepts any.
package clienttest
