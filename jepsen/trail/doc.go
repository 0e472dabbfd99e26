// Package trail holds the trail that the nodes keep against the answers that
// callers had. It shares nothing with the server: it reads a history.
//
// All nodes must have the same trail, in strictly growing places. By it, each
// task has one life: submitted once, no claim before the last one has ended, one
// completion. Each acknowledged submit, claim, complete, fail, release, retry
// and delete has its event exactly once, of the same worker and token, in the
// entry that the answer names; what nobody asked for has none; and since no event
// of a claim is there twice, a call of unknown outcome took effect once at most.
// A schedule has no more tasks than slots that had come.
package trail
