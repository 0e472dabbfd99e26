// Package api is claimq's HTTP interface, on fasthttp: it checks a request, turns it into a command or a read of
// package fsm, hands it to the node, and answers as docs/api.md says.
//
// It decides nothing about tasks: whether a claim succeeds is decided when the state machine applies the command, and
// this package only words the refusal. It does not know Raft, and needs only the interface Node of a node. It does
// not open the listener.
//
// Package exchange checks Host and Origin, finds the route, and then either forwards the whole request to the leader
// or calls the function that calls.go lists for it. That function decodes the request, proposes or reads, and encodes
// the answer. Answers to the calls that workers make most are appended byte by byte to the connection's own buffer,
// without reflection.
//
//	server, err := api.New(api.Config{Node: node})
//	node.SetForwardHandler(server.ForwardHandler())
//	node.SetOperators(server.Operator)
//	err = server.Serve(listener)
package api
