// Package workload implements the callers of a run under faults: they do everything that
// workers, producers and operators may do, in every order that could cause trouble for
// servers, at a bounded rate.
//
// jepsen/README.md lists it.
//
// All choices depend on the seed, but the cluster's answers do not, so two runs of a seed
// are similar but not the same.
package workload
