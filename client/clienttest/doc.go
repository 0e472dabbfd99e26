// Package clienttest is a claimq server for the tests of programs that use package
// client. It keeps its tasks in memory and starts in a millisecond, and its time
// moves only when the test moves it, or with Ticking as the program's does.
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
// It is the state machine and the HTTP API of a real node, over connections within the process:
// what it accepts, refuses and answers is what a cluster does. Only the replication is not
// there. Server.URL opens a loopback port for what has no Dial. So many servers as tests may run
// side by side.
//
// # Time
//
// The clock begins at Start, or where StartAt says, and stands still. Advance moves
// it on, and does what comes due on the way, in order, each at its time: leases
// expire, tasks that wait for a backoff or their RunAt become pending, those that
// expire fail, schedules submit a task for every slot, ended tasks are removed,
// rate limits refill. When it returns, all that is done, and the claims that
// waited for one of these tasks have it.
//
// A time that the program hands to the server, as Task.RunAt, counts by this clock:
// take it from Now, or use StartAt(time.Now()) where the program looks at the clock
// of its machine.
//
// How long a call waits goes by the program's time, with the server as with a cluster: a
// ClaimRequest.Wait, a context's deadline, a handler's timeout, the pauses between
// the tries of a call.
//
// # In a bubble
//
// In a bubble of testing/synctest the program's time is virtual, and with Ticking the server's
// clock goes along with it. So leases, backoffs and timeouts pass together while the test
// sleeps, in no time:
//
//	synctest.Test(t, func(t *testing.T) {
//		s := clienttest.New(t, clienttest.Ticking())
//		... // a Worker of s.Client() runs
//		id, err := s.Client().Submit(ctx, task) // with a backoff of an hour
//		time.Sleep(61 * time.Minute)
//		s.Await(id, client.StatusCompleted) // in the second attempt
//	})
//
// The server, its clients and workers are made in the bubble, and URL is not called there: a
// connection of the network does not count as waiting, so that time would stand still. The
// worker has to be stopped before the test function returns, or by its Cleanup.
//
// # What was submitted
//
// WantSubmitted asserts the params of the tasks of a kind, Submitted returns them, and
// Server.Tasks returns the tasks of a type.
//
// # Leases
//
// A worker counts its lease by the program's clock: Claim.Deadline does not know of
// Advance, and the handler's context does not end by it. To the server the claim is
// over once the test has advanced past the lease, as if the worker had been stopped
// for so long: another one can claim the task, and the worker's next call with the old
// claim, an extend or a settling one, gets ErrStaleClaim, or ErrWrongWorker if another
// worker has the task by then. A Worker that learns it at its next extend, after a third
// of the lease, ends the handler's context with ErrLeaseLost. With a free
// slot it may claim the task again before that.
//
// # What it is not
//
// The same calls in the same order give the same ids and tokens. Calls that are made
// at the same time come in any order, as anywhere.
//
// Nothing is kept when it closes. It is one node that leads: calls that change the
// members or restore a backup are refused with the code membership_refused. It asks
// for no API keys, and takes any.
package clienttest
