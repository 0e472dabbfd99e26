// Package exchange is one request and its answer: the way in from fasthttp's handler to
// the function that answers the call, and the way out again.
//
// It owns who may ask (guard, origin, the key, its roles, task types and rate), which call
// it is (the table is the API's, the routes are made of it), where it is answered (here, or
// passed on to the leader as a whole, once), how long it may take, and that there is one
// answer, whatever happens: counted, logged, with its index, and with the claims given back
// whose answer cannot be written. Host is what all requests of a server share.
//
// What a call means it does not know: that is a Call's Answer, a function of package api,
// which alone uses it. Invariants: a Request belongs to its handler's goroutine until it
// finishes, and is used again after that; nothing of it, nor of the request's bytes, is kept
// beyond. The leader trusts nothing that another node says of a key.
package exchange
