// Package nodes decides which node of a cluster gets a client's next request: the leader that a node named, or the
// configured endpoint that answered last.
//
// It sends nothing itself; the caller reports the outcome of each request.
package nodes
