// Package door decides who may come in, and how much of it. It has the public port: its listener and connections, and
// the bounds of connections, of connections without a key, of bodies being received, of answers not yet read and of TLS
// handshakes. It has the keys: a Keyring finds the caller for a key or a token, with roles, task types, addresses,
// expiry and what is left of its rate; Shares count what one key holds; a Login says that a key was shown to the page.
// And it has the FairQueues in which reads wait.
//
// It does not know what a body or an answer means: the server reports what the head said (Conn.Head) and how much room
// an answer takes (Conn.HoldAnswer), and asks whether it was delivered (Conn.OnDelivered). A Conn belongs to the
// goroutine that serves it, except Close and methods that say otherwise. A Keyring is never changed: a reload makes a
// new one.
package door
