// Package exchange handles one request and its answer: the way from fasthttp's handler to the function that answers
// the call, and back.
//
// It decides whether the request is permitted (guard, origin, key, roles, task types and rate), which call it is
// (routes are made from the API's table), where it is answered (here, or forwarded as a whole to the leader, once),
// and how long it may take. It makes sure that there is exactly one answer, whatever happens: counted, logged, with
// its index, and with claims released whose answer cannot be written. Host holds what all requests of a server share.
//
// It does not know what a call means: that is in the Call's Answer function, in package api, its only user.
// Invariants: a Request belongs to its handler's goroutine until it finishes, and is reused after that, so that no
// part of it, or of the request's bytes, may be kept longer. The leader does not trust what another node says about a
// key.
package exchange
