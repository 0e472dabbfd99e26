// Package port implements the public port: its listener and its connections. It bounds connections, connections
// without a key, bodies being received, answers not yet read, and TLS handshakes. It keeps deadlines cheap, notices
// when a client has gone, and has claims released whose answer could not be written.
//
// It knows no requests: the server reports what the head said (Conn.Head), how much room an answer takes
// (Conn.HoldAnswer), and which claims it has (Conn.Unsent). A Conn belongs to the goroutine that serves it, except
// Close and methods that say otherwise.
package port
