// Package api is claimq's HTTP interface, on fasthttp: it checks a request, turns it into a command or a read of
// package fsm, hands it to the node, and answers as docs/api.md says.
//
// It decides nothing about tasks: whether a claim succeeds is decided when the state machine applies the command, and
// this package only words the refusal. It does not know Raft, and needs only the interface Node of a node. It does
// not open the listener.
//
// A request takes one way. Its head is checked before its body is read (head.go, origin.go, keycheck.go). The table in
// calls.go says which call it is; request.go passes it on to the leader unchanged, once (forward.go), or
// calls the function that the table has for it. That function decodes the body, proposes a command or reads, and
// appends the answer to the connection's own buffer, byte by byte for the calls that workers make most. There is
// exactly one answer, whatever happens: counted, with its index, and with claims released that cannot be delivered
// (caller.go).
//
// A request belongs to its handler's goroutine until it finishes, and is reused after that: no part of it, or of its
// bytes, may be kept longer. The leader does not trust what another node says about a key.
//
//	server, err := api.New(api.Config{Node: node})
//	node.SetForwardHandler(server.ForwardHandler())
//	node.SetOperators(server.Operator)
//	err = server.Serve(listener)
package api
