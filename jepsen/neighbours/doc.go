// Package neighbours adds other users of the cluster to a run. Heavy readers repeat costly reads
// over many connections. Tenants have keys for a few task types, and their answers are searched for
// data of other callers. Changes by tenants enter the history like those of any caller, and a wrong
// answer is recorded as an event.
package neighbours
