// Package workload is what the callers of a run under faults do: everything
// that a worker, a producer or an operator may do, in every order that gets
// servers into trouble, at a bounded rate.
//
// Producers repeat submits, submit one key from two sides at once, and submit
// many in one call. Some completes submit what follows and claim the next task in the same step. Some workers settle several claims, and submit, in a batch, atomic or not. Workers claim by order and by id, one and several, with the
// same claim_request_id again, also at the same time; some wait for a task, through
// any node. Some tasks are held back by their group or by a limit of their type, some by a director who pauses their type, some by a delay.
// Some tasks are parents with steps; processors contend for the finalization of
// those that want one, and die with it. Workers extend about when
// the lease ends, settle late and twice, and die. Readers, some of them bound
// to one node with a long patience, read linearizably, stale, and stale with a
// lowest index, single tasks and lists; some wait for the end of a task. A meddler deletes,
// retries and cancels. An actor cancels, retries and deletes all tasks of a type at once.
//
// All that is chosen comes from the seed; what the cluster answers does not, so
// two runs of a seed are alike and not the same.
package workload
