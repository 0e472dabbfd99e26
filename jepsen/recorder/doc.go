// Package recorder calls a running cluster and writes down what it was
// answered, one op for each HTTP request.
//
// It does not go through package client: the client repeats by itself, which
// would hide the unknown outcomes that the checker is to judge. Here a repeat
// is an op of its own, with the same idempotency key, claim_request_id or
// claim token.
package recorder
