// Package callbody reads the bodies of calls, makes their commands and appends their
// answers: one type a call, by the interface Body, so that an op of a batch and a call of
// its own are the same code. It owns the decoder of JSON. A body is refused as a whole or
// becomes one command; nothing of a refused one is used. What it returns points into the
// body that it was given, which has to stay as it is until the answer is appended.
//
// It knows no connection, no key and no node: who may make a call, and who decides it, is
// the business of package api.
package callbody
