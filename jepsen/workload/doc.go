// Package workload is what the callers of a run under faults do: everything
// that a worker, a producer or an operator may do, in every order that gets
// servers into trouble, at a bounded rate.
//
// jepsen/README.md lists it.
//
// All that is chosen comes from the seed; what the cluster answers does not, so
// two runs of a seed are alike and not the same.
package workload
