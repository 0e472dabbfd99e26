package strangers

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

//go:embed caller.py
var script string

// errPython is returned for a request that failed in Python.
var errPython = errors.New("python")

// waitMax bounds a request without a deadline.
const waitMax = 30 * time.Second

// python makes one request after the other with a Python process.
type python struct {
	mu  sync.Mutex
	in  io.Writer     // guarded by mu
	out *bufio.Reader // guarded by mu
}

func openPython(g *Ground, _ int64) (http.RoundTripper, error) {
	cmd := exec.Command("python3", "-c", script)
	// Otherwise urllib would look for proxies in the environment.
	cmd.Env = append(os.Environ(), "no_proxy=*")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &python{in: in, out: bufio.NewReader(out)}, g.start(cmd)
}

// RoundTrip makes one request. It ends when Python's own timeout ends.
func (p *python) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := struct {
		URL     string            `json:"url"`
		Method  string            `json:"method"`
		Header  map[string]string `json:"header"`
		Body    string            `json:"body"`
		Seconds float64           `json:"seconds"`
	}{URL: r.URL.String(), Method: r.Method, Header: headerOf(r), Seconds: waitMax.Seconds()}
	if deadline, ok := r.Context().Deadline(); ok {
		asked.Seconds = max(time.Until(deadline), time.Millisecond).Seconds()
	}
	var err error
	if asked.Body, err = bodyOf(r); err != nil {
		return nil, err
	}
	line, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var said struct {
		Status int
		Header map[string]string
		Body   string
		Error  string
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return nil, err
	}
	if said.Error != "" {
		return nil, fmt.Errorf("%w: %s", errPython, said.Error)
	}
	resp := &http.Response{StatusCode: said.Status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(said.Body)), Request: r}
	for name, value := range said.Header {
		resp.Header.Set(name, value)
	}
	return resp, nil
}

// headerOf returns the request's header, with one value each.
func headerOf(r *http.Request) map[string]string {
	header := map[string]string{"Content-Type": "application/json"}
	for name := range r.Header {
		header[name] = r.Header.Get(name)
	}
	return header
}

// bodyOf returns the request's body, "" if it has none.
func bodyOf(r *http.Request) (string, error) {
	if r.Body == nil {
		return "", nil
	}
	b, err := io.ReadAll(r.Body)
	return string(b), errors.Join(err, r.Body.Close())
}
