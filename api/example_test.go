package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/nodetest"
)

// A server answers the calls of docs/api.md for a node. The node here has a real state machine, without Raft.
func Example() {
	node := nodetest.New()
	server, err := api.New(api.Config{Node: node})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()

	answer, err := http.Post("http://"+listener.Addr().String()+"/api/tasks/claim", "application/json", strings.NewReader(`{"worker_id":"worker-1"}`))
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	if err := answer.Body.Close(); err != nil {
		panic(err)
	}
	fmt.Println(answer.StatusCode, strings.Contains(string(body), `"code":"no_pending_tasks"`))

	http.DefaultClient.CloseIdleConnections()
	if err := server.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	if err := <-ended; err != nil {
		panic(err)
	}
	// Output: 404 true
}
