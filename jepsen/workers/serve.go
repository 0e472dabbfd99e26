package workers

import (
	"errors"
	"fmt"
	"net"
	"net/http"
)

// listen listens on a free port of loopback.
func listen() (l net.Listener, url string, err error) {
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", fmt.Errorf("listen: %w", err)
	}
	return l, "http://" + l.Addr().String(), nil
}

// serve serves until close is called, which waits for the server, and not for what it is
// asked at the moment.
func serve(l net.Listener, h http.Handler) (close func() error) {
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return func() error {
		errClose := server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			return errors.Join(err, errClose)
		}
		return errClose
	}
}
