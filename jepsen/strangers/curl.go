package strangers

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// errNotTheirs is returned for an answer that did not come from a node.
var errNotTheirs = errors.New("the proxy has answered by itself")

// curl makes each request with a curl process, through a proxy.
type curl struct {
	ground *Ground
	socket string // of the proxy
}

// openCurl returns a function that opens callers through the proxy, which is started for the
// first one.
func openCurl(p proxy) func(*Ground, int64) (http.RoundTripper, error) {
	return func(g *Ground, _ int64) (http.RoundTripper, error) {
		socket, err := g.through(p)
		return &curl{g, socket}, err
	}
}

// RoundTrip makes one request.
func (c *curl) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(r)
	if err != nil {
		return nil, err
	}
	args := []string{"-sS", "-i", "--raw", "--unix-socket", c.socket, "-X", r.Method, "-H", "Expect:", r.URL.String()}
	for name, value := range headerOf(r) {
		args = append(args, "-H", name+": "+value)
	}
	if body != "" {
		args = append(args, "--data-binary", "@-")
	}
	if deadline, ok := r.Context().Deadline(); ok {
		args = append(args, "--max-time", strconv.FormatFloat(max(time.Until(deadline), time.Millisecond).Seconds(), 'f', 3, 64))
	}
	var out, words bytes.Buffer
	cmd := exec.Command("curl", args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(body), &out, &words
	if err := c.ground.begin(cmd); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("curl: %w: %s", err, words.String())
	}
	resp, err := read(&out, r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return nil, fmt.Errorf("%w: %s", errNotTheirs, resp.Status)
	}
	return resp, nil
}
