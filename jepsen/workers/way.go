package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// cut is what is wrong with a worker's network.
type cut string

// The cuts.
const (
	whole  cut = "whole"
	silent cut = "silent" // nothing passes; connections stay
	closed cut = "closed" // connections are closed, also new ones
)

const (
	// bodyBytesMax bounds a request or an answer.
	bodyBytesMax = 16 << 20
	// duringMax is how long after a call was passed on a strike during it is, at
	// most.
	duringMax = 4 * time.Millisecond
	// lateShare is one in how many requests is passed on after a cut although its
	// caller has gone meanwhile.
	lateShare = 2
)

// way is how one worker reaches the nodes: a proxy for each.
type way struct {
	slot    int
	strikes *strikes
	nodes   []string // URLs
	own     []string // URLs of the proxies, of each node
	http    *http.Client
	servers []*http.Server
	wg      sync.WaitGroup

	mu      sync.Mutex // guards what follows
	ended   bool       // no call is carried any more
	cut     cut
	changed chan struct{} // closed when cut changes
	rng     *rand.Rand
	late    int // requests that were passed on late
	dropped int // answers that were not passed on
	counts  map[call]int
}

// openWay starts the proxies of a worker. The caller closes it.
func openWay(slot int, nodes []string, k *strikes, seed int64) (*way, error) {
	w := &way{
		slot: slot, strikes: k, nodes: nodes, cut: whole, changed: make(chan struct{}), rng: rand.New(rand.NewSource(seed)), counts: map[call]int{},
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	// A proxy may be called at once, and knows all others.
	var listeners []net.Listener
	for range nodes {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, l.Close())
			}
			return nil, fmt.Errorf("open way: %w", err)
		}
		listeners = append(listeners, l)
		w.own = append(w.own, "http://"+l.Addr().String())
	}
	for i, l := range listeners {
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.carry(i, rw, r) })}
		w.servers = append(w.servers, server)
		w.wg.Go(func() { _ = server.Serve(l) }) // it ends with close
	}
	return w, nil
}

// close closes the proxies and waits for the calls that they carry.
func (w *way) close() error {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.set(closed)
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	w.wg.Wait()
	w.http.CloseIdleConnections()
	return errors.Join(errs...)
}

// set cuts the network, or makes it whole.
func (w *way) set(c cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = c
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *way) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.Intn(n) == 0
}

// pass waits until the network is not silent. ok is false if nothing gets
// through: it is closed, or the caller has gone meanwhile.
func (w *way) pass(caller context.Context) (held, ok bool) {
	for {
		w.mu.Lock()
		c, changed := w.cut, w.changed
		w.mu.Unlock()
		switch c {
		case whole:
			return held, caller.Err() == nil
		case closed:
			return held, false
		}
		held = true
		<-changed
	}
}

// enter counts a call in, for close to wait for. It returns false once the way is
// being closed.
func (w *way) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.wg.Add(1)
	}
	return !w.ended
}

// carry passes a request on to a node, and its answer back.
func (w *way) carry(node int, rw http.ResponseWriter, r *http.Request) {
	if !w.enter() {
		panic(http.ErrAbortHandler)
	}
	defer w.wg.Done()
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyBytesMax))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	kind := callOf(r.URL.Path, body)
	ctx := r.Context()
	if held, ok := w.pass(ctx); !ok {
		// What was sent before its caller gave up may arrive all the same.
		if !held || !w.chance(lateShare) || !w.isWhole() {
			panic(http.ErrAbortHandler)
		}
		w.count(&w.late)
		ctx = context.WithoutCancel(ctx)
	}
	k := w.strikes.take(kind, w.slot)
	k.at(before)
	answer, header, status, err := w.ask(ctx, node, r, body, k)
	k.at(after)
	w.note(kind)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if _, ok := w.pass(r.Context()); !ok || k != nil && k.drop {
		w.count(&w.dropped)
		panic(http.ErrAbortHandler)
	}
	w.reply(rw, answer, header, status)
}

func (w *way) isWhole() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut == whole
}

func (w *way) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *way) note(c call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[c]++
}

// ask makes the request of the node.
func (w *way) ask(ctx context.Context, node int, r *http.Request, body []byte, k *strike) (answer []byte, header http.Header, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, w.nodes[node]+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, 0, err
	}
	req.Header = r.Header.Clone()
	struck := make(chan struct{})
	go func() {
		defer close(struck)
		if k != nil && k.phase == during {
			w.mu.Lock()
			delay := time.Duration(w.rng.Int63n(int64(duringMax)))
			w.mu.Unlock()
			<-time.After(delay)
			k.at(during)
		}
	}()
	defer func() { <-struck }()
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, nil, 0, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, bodyBytesMax))
	return answer, resp.Header, resp.StatusCode, err
}

// reply passes the answer back. Who is sent on to the leader is sent on to the
// proxy in front of it.
func (w *way) reply(rw http.ResponseWriter, answer []byte, header http.Header, status int) {
	for name, values := range header {
		rw.Header()[name] = values
	}
	if to := header.Get("Location"); to != "" {
		for i, node := range w.nodes {
			if rest, ok := strings.CutPrefix(to, node); ok {
				rw.Header().Set("Location", w.own[i]+rest)
			}
		}
	}
	rw.WriteHeader(status)
	_, _ = rw.Write(answer) // who does not take it has gone
}

// add adds what was carried to the report, and returns how many calls that were.
func (w *way) add(r *Report) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Late += w.late
	r.Dropped += w.dropped
	if r.Kinds == nil {
		r.Kinds = map[string]int{}
	}
	total := 0
	for kind, n := range w.counts {
		r.Kinds[string(kind)] += n
		total += n
	}
	return total
}
