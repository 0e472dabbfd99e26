// Package api is claimq's HTTP interface, on fasthttp: it checks a request,
// turns it into a command or a read of package fsm, hands it to the node, and
// answers as docs/api.md says.
//
// What it does not do: it decides nothing about tasks. Whether a claim
// succeeds is decided where the state machine applies the command; a refusal
// from there is only put into words here. It does not know Raft: all that it
// needs of a node is the interface Node. It does not open the listener.
//
// Package exchange takes a request past guard (Host, Origin) and the routes (path,
// method), then either passes it on to the leader as a whole or calls what the table
// in calls.go has for it: here it is decoded, proposed or read, and encoded. Answers to the calls that workers make all day are appended byte by
// byte to the connection's own buffer; nothing on that way uses reflection.
//
//	server, err := api.New(api.Config{Node: node})
//	node.SetForwardHandler(server.ForwardHandler())
//	node.SetOperators(server.Operator)
//	err = server.Serve(listener)
package api
