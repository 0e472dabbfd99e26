// Package nodes decides which node of a cluster gets a client's next request: the leader
// that a node named, or one of the configured endpoints, the last that answered.
//
// It sends nothing itself; its caller tells it what came of a request.
package nodes
