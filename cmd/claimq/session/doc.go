// Package session is a command's talk with the nodes: the flags that say where they are
// and who calls, with the variables that stand for them, and Talk, one command's calls,
// which the client repeats as long as --timeout allows.
//
// A call that did not succeed comes back as a term.CallError, which knows what to tell
// the user and which exit code that is. A Talk is good until the function that With gave
// it to returns.
package session
