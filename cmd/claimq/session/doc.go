// Package session is the connection of a command to the nodes: the flags for their addresses and for authentication,
// with the corresponding variables, and Talk, which makes the calls of one command. The client repeats calls as long
// as --timeout permits.
//
// A failed call returns a term.CallError, which has the message for the user and the exit code. A Talk is valid until
// the function that With called with it returns.
package session
