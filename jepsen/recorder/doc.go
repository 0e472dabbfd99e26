// Package recorder calls a running cluster and records the answers, one op for each HTTP
// request.
//
// It does not use package client, because the client repeats calls by itself, which would
// hide the unknown outcomes that the checker should judge. Here a repeat is a separate
// op, with the same idempotency key, claim_request_id or claim token.
package recorder
