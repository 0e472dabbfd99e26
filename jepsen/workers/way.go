package workers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
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
	ends    []func() error // of the proxies
	wg      sync.WaitGroup // of the calls that are carried

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
		l, url, err := listen()
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, l.Close())
			}
			return nil, err
		}
		listeners, w.own = append(listeners, l), append(w.own, url)
	}
	for i, l := range listeners {
		w.ends = append(w.ends, serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.carry(i, rw, r) })))
	}
	return w, nil
}

// close closes the proxies and waits for the calls that they carry.
func (w *way) close() error {
	w.locked(func() { w.ended = true })
	w.set(closed)
	var errs []error
	for _, end := range w.ends {
		errs = append(errs, end())
	}
	w.wg.Wait()
	w.http.CloseIdleConnections()
	return errors.Join(errs...)
}

func (w *way) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// set cuts the network, or makes it whole.
func (w *way) set(c cut) {
	w.locked(func() {
		w.cut = c
		close(w.changed)
		w.changed = make(chan struct{})
	})
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

// carry passes a request on to a node, and its answer back. Where it does not the
// connection breaks.
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
		late := false
		w.locked(func() {
			if late = held && w.rng.Intn(lateShare) == 0 && w.cut == whole; late {
				w.late++
			}
		})
		if !late {
			panic(http.ErrAbortHandler)
		}
		ctx = context.WithoutCancel(ctx)
	}
	k := w.strikes.take(kind, w.slot)
	k.at(before)
	resp, answer, err := w.ask(ctx, node, r, body, k)
	k.at(after)
	w.locked(func() { w.counts[kind]++ })
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if _, ok := w.pass(r.Context()); !ok || k != nil && k.drop {
		w.locked(func() { w.dropped++ })
		panic(http.ErrAbortHandler)
	}
	// Who is sent on to the leader is sent on to the proxy in front of it.
	maps.Copy(rw.Header(), resp.Header)
	for i, node := range w.nodes {
		if rest, ok := strings.CutPrefix(resp.Header.Get("Location"), node); ok {
			rw.Header().Set("Location", w.own[i]+rest)
		}
	}
	rw.WriteHeader(resp.StatusCode)
	_, _ = rw.Write(answer) // who does not take it has gone
}

// ask makes the request of the node, and returns the answer and its body.
func (w *way) ask(ctx context.Context, node int, r *http.Request, body []byte, k *strike) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, w.nodes[node]+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header = r.Header.Clone()
	if k != nil && k.phase == during {
		var delay time.Duration
		w.locked(func() { delay = time.Duration(w.rng.Int63n(int64(duringMax))) })
		var struck sync.WaitGroup
		struck.Go(func() {
			<-time.After(delay)
			k.at(during)
		})
		defer struck.Wait()
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, bodyBytesMax))
	return resp, answer, err
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
