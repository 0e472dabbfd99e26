// Package reads measures how many reads per second a node answers.
package reads

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Rate reads from the node at the URL, http://..., over conns connections with one request at a time each. It returns
// how many requests per second were answered. path returns the path of the i-th request on a connection.
func Rate(url string, conns int, during time.Duration, path func(conn, i int) string) (float64, error) {
	client := &fasthttp.HostClient{Addr: strings.TrimPrefix(url, "http://"), MaxConns: conns}
	defer client.CloseIdleConnections()
	var count atomic.Int64
	var reading sync.WaitGroup
	failed := make([]error, conns)
	for conn, end := 0, time.Now().Add(during); conn < conns; conn++ {
		reading.Go(func() {
			var req fasthttp.Request
			var resp fasthttp.Response
			for i := 0; time.Now().Before(end) && failed[conn] == nil; i++ {
				req.SetRequestURI(url + path(conn, i))
				if failed[conn] = client.Do(&req, &resp); failed[conn] == nil && resp.StatusCode() != http.StatusOK {
					failed[conn] = fmt.Errorf("GET %s: %d %s", path(conn, i), resp.StatusCode(), bytes.Clone(resp.Body()))
				}
				count.Add(1)
			}
		})
	}
	reading.Wait()
	return float64(count.Load()) / during.Seconds(), errors.Join(failed...)
}
