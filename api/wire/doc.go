// Package wire holds the types that claimq's server and its clients share: requests, answers and errors with their
// JSON names, the bounds of their fields, and the stable error codes with their HTTP statuses. It imports only the
// standard library.
//
// It does not read bodies, and does not encode the server's frequent answers (package api does, and its tests compare
// both). It knows nothing about HTTP transport.
package wire
