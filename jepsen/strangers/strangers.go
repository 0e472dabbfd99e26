package strangers

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"

	"github.com/claimq/claimq/internal/procs"
)

// Stranger is a kind of caller.
type Stranger struct {
	Name string
	// Anonymous callers send no claim_request_id.
	Anonymous bool
	// Hedges of a hundred claims and completes are sent twice at once.
	Hedges int
	// URL, if not "", is used instead of the nodes', because a proxy is in front of them.
	URL string

	open func(g *Ground, seed int64) (http.RoundTripper, error)
}

// proxied is the URL for a proxy, which passes the host name on: open nodes accept no other.
const proxied = "http://localhost"

// all lists the strangers of a run.
var all = []Stranger{
	{Name: "sockets", Anonymous: true, Hedges: 60, open: openSockets},
	{Name: "python", Anonymous: true, open: openPython},
	{Name: "haproxy", URL: proxied, open: openCurl(haproxy)},
	{Name: "nginx", Anonymous: true, URL: proxied, open: openCurl(nginx)},
}

// Ground is the environment of a run's strangers. It is for one goroutine.
type Ground struct {
	Dir   string   // for their files; it exists
	Nodes []string // addresses of the nodes, host:port
	// Dial connects to a node; nil means an ordinary dialer. Start starts a command where the
	// callers are; nil means here.
	Dial  procs.DialFunc
	Start func(*exec.Cmd) error

	opened []io.Closer
}

// Caller is a caller of one kind.
type Caller struct {
	Stranger
	// First makes its requests, and Second the duplicates that it sends at the same time.
	First, Second http.RoundTripper
}

// Callers returns one of each kind. The ground closes them, even if this fails.
func (g *Ground) Callers(seed int64) ([]Caller, error) {
	var callers []Caller
	for _, s := range all {
		first, err := s.open(g, 2*seed)
		second, errSecond := s.open(g, 2*seed+1)
		if err := errors.Join(err, errSecond); err != nil {
			return nil, fmt.Errorf("the caller %s: %w", s.Name, err)
		}
		callers = append(callers, Caller{s, first, second})
	}
	return callers, nil
}

// Close ends all programs. There must be no more calls.
func (g *Ground) Close() error {
	var errs []error
	for _, c := range slices.Backward(g.opened) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// program is a process that runs until it is closed.
type program struct{ *exec.Cmd }

// Close ends the process.
func (p program) Close() error {
	_ = p.Process.Kill() // it may have ended by itself
	_ = p.Wait()
	return nil
}

// start starts a program of the machine, which ends with the ground.
func (g *Ground) start(cmd *exec.Cmd) error {
	if err := g.begin(cmd); err != nil {
		return fmt.Errorf("%w (.ci/tools installs it)", err)
	}
	g.opened = append(g.opened, program{cmd})
	return nil
}

// begin starts a command where the callers are.
func (g *Ground) begin(cmd *exec.Cmd) error {
	cmd.SysProcAttr = procs.ChildAttr()
	if g.Start != nil {
		return g.Start(cmd)
	}
	return cmd.Start()
}
