// Package workers puts real worker processes, of the client library, through what
// befalls worker processes: they are stopped past their leases, killed, asked to
// end, cut off from the network, and the leader is killed at each of their calls.
//
// Each worker reaches the nodes through proxies of the harness, which know a call
// when they see one: they cut the worker off, kill the leader or stop the worker
// just before a call is passed on, while it is under way or before its answer is,
// and drop answers. What the handlers saw is in the workers' diaries (package
// diary); the judge looks whether two of them can have believed to hold one task,
// whether anything was lost or done twice, and what the store, which knows tokens,
// refused.
//
// The worker process is the program in worker.
package workers
