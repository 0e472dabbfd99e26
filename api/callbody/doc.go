// Package callbody decodes the bodies of calls, makes their commands and appends their answers. Each call has one
// type that implements Body, so that an op of a batch and a call by itself use the same code. The package contains
// the JSON decoder. A body is either refused as a whole or becomes one command. Results point into the given body,
// which must not change until the answer is appended.
//
// It knows no connections, keys or nodes; package api decides who may make a call.
package callbody
