// Package port owns the public port: its listener, its connections and what each of them
// may take. It bounds connections, those that have shown no key, bodies that are received,
// answers that are not taken, and TLS handshakes; it keeps deadlines cheap, notices that a
// client has gone, and has the claims released whose answer could not be written.
//
// It knows no request: who serves one says what its head told (Conn.Head), what its answer
// takes (Conn.HoldAnswer), which claims it names (Conn.Unsent). A Conn is for the goroutine
// that serves it, but for Close and what says otherwise.
package port
