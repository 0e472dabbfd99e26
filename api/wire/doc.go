// Package wire is all that claimq's server and its clients share: request,
// response and error types with their JSON names, and the stable error codes
// with their HTTP statuses. It imports the standard library only.
//
// It does not validate, does not encode the server's hot answers (package api
// does, and its tests hold both against each other) and knows nothing of HTTP
// transport.
package wire
