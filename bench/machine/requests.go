package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// answer is the body of the empty handler's answers and of its requests.
const answer = `{"id":1}`

// serveEmpty listens on a free loopback port, writes its address to out, and serves the empty handler until in ends.
func serveEmpty(in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, listener.Addr())
	server := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) { c.SetBodyString(answer) }, NoDefaultServerHeader: true}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, listener.Close(), <-ended) // a closed listener ends Serve without an error
}

// requestRate starts a server process and returns how many requests per second it answers over conns connections.
func requestRate(conns int, during time.Duration) (rate float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	server := exec.Command(self, "--"+serveFlag)
	server.Stderr = os.Stderr
	end, err := server.StdinPipe()
	if err != nil {
		return 0, err
	}
	told, err := server.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end.Close(), server.Wait()) }()
	addr, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the server says no address: %w", err)
	}
	return askAll(strings.TrimSpace(addr), conns, during)
}

// askAll sends requests over all connections at once, one after another on each, and at least one.
func askAll(addr string, conns int, during time.Duration) (float64, error) {
	client := &fasthttp.HostClient{Addr: addr, MaxConns: conns, NoDefaultUserAgentHeader: true}
	defer client.CloseIdleConnections()
	var answered atomic.Int64
	errs := make([]error, conns)
	began := time.Now()
	var asking sync.WaitGroup
	for i := range conns {
		asking.Go(func() {
			var req fasthttp.Request
			var resp fasthttp.Response
			for {
				req.Reset()
				req.Header.SetMethod(fasthttp.MethodPost)
				req.SetRequestURI("http://" + addr + "/")
				req.SetBodyRaw([]byte(answer))
				errs[i] = client.Do(&req, &resp)
				answered.Add(1)
				if errs[i] != nil || time.Since(began) >= during {
					return
				}
			}
		})
	}
	asking.Wait()
	return float64(answered.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}
