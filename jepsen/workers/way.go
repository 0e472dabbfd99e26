package workers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"
)

// cut is a fault of a worker's network.
type cut string

// The cuts.
const (
	whole  cut = "whole"
	silent cut = "silent" // nothing passes; connections stay
	closed cut = "closed" // connections are closed, including new ones
	frozen cut = "frozen" // nothing passes on open connections, which stay open; new ones work
	shut   cut = "shut"   // new connections are accepted and get no answer; open ones work
)

const (
	// bodyBytesMax bounds a request or an answer.
	bodyBytesMax = 16 << 20
	// duringMax bounds the delay of a strike during a call after the call was forwarded.
	duringMax = 4 * time.Millisecond
	// One of lateShare requests is forwarded after a cut although its caller has gone meanwhile.
	lateShare = 2
	// strayShare and strayShareBare: the proxy itself answers one in that number of calls. Bare
	// workers have a higher share because all ends of their calls are recorded. strayMax bounds the
	// wait that the answer asks for, in seconds.
	strayShare, strayShareBare, strayMax = 50, 10, 60
)

// strays are the statuses of the proxy's own answers, which have no code of claimq's. They replace
// the call to a node, or the node's answer.
var strays = [...]int{
	http.StatusFound, http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout,
	http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
}

// errCut is returned for a call that the network does not forward.
var errCut = errors.New("the network is cut")

// way is one worker's way to the nodes: a proxy that it dials in place of each node, or a proxy for each node. It is
// the transport of these proxies.
type way struct {
	slot    int
	strikes *strikes
	strays  int // the proxies answer one in that number of calls by themselves, 0 = none
	proxies []*httptest.Server
	http    *http.Transport

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond // of cut
	cut     cut
	opened  int // connections
	before  int // of these, when the network was cut
	rng     *rand.Rand
	late    int // requests that were forwarded late
	dropped int // answers that were not forwarded
	strayed int // the proxy's own answers
	counts  map[call]int
}

// openWay returns the way of a worker, without proxies. The caller must close it.
func openWay(slot int, k *strikes, seed int64) *way {
	w := &way{
		slot: slot, strikes: k, cut: whole, rng: rand.New(rand.NewSource(seed)), counts: map[call]int{},
		http: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true},
	}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// proxy starts a proxy for the worker to dial in place of every node, and returns its address.
func (w *way) proxy() (addr string) {
	return w.start(func(r *httputil.ProxyRequest) { r.Out.URL.Host = r.In.Host })
}

// proxyOf starts a proxy that the worker takes for one node, and returns its address. It does not let the node
// redirect to the leader, which the worker would then call directly.
func (w *way) proxyOf(node string) (addr string) {
	return w.start(func(r *httputil.ProxyRequest) {
		r.Out.URL.Host, r.Out.Host = node, node
		r.Out.Header.Del("X-Claimq-Redirect")
	})
}

func (w *way) start(route func(*httputil.ProxyRequest)) (addr string) {
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "http"
			route(r)
		},
		Transport: w,
		// The connection of a call that is not forwarded breaks.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	proxy.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		number := 0
		w.locked(func() { w.opened++; number = w.opened })
		return context.WithValue(ctx, connNumber{}, number)
	}
	proxy.Start()
	w.proxies = append(w.proxies, proxy)
	return proxy.Listener.Addr().String()
}

// connNumber is the context key for the number of a request's connection: 1, 2, ...
type connNumber struct{}

// close closes the proxies and waits for the calls that they forward.
func (w *way) close() {
	w.set(closed)
	for _, proxy := range w.proxies {
		proxy.Close()
	}
	w.http.CloseIdleConnections()
}

func (w *way) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// set cuts the network, or repairs it.
func (w *way) set(c cut) {
	w.locked(func() { w.cut, w.before = c, w.opened })
	w.changed.Broadcast()
}

// pass waits until the network is not silent for the caller's connection. ok is false if nothing
// gets through: it is closed, or the caller has gone meanwhile.
func (w *way) pass(caller context.Context) (held, ok bool) {
	number, _ := caller.Value(connNumber{}).(int)
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut == silent || w.cut == frozen && number <= w.before || w.cut == shut && number > w.before {
		held = true
		w.changed.Wait()
	}
	return held, w.cut != closed && caller.Err() == nil
}

// RoundTrip forwards a request to its node, and the answer back. Only the proxy calls it.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r.Body)
	if err != nil {
		return nil, err
	}
	kind := callOf(r.URL.Path, body)
	ctx := r.Context()
	if held, ok := w.pass(ctx); !ok {
		// A request that was sent before its caller gave up may still arrive.
		late := false
		w.locked(func() {
			if late = held && w.rng.Intn(lateShare) == 0 && w.cut != closed; late {
				w.late++
			}
		})
		if !late {
			return nil, errCut
		}
		ctx = context.WithoutCancel(ctx)
	}
	early, over := w.stray(r)
	if early != nil {
		return early, nil
	}
	k := w.strikes.take(kind, w.slot)
	k.at(before)
	resp, err := w.ask(r.Clone(ctx), body, k)
	k.at(after)
	w.locked(func() { w.counts[kind]++ })
	if err != nil {
		return nil, err
	}
	if _, ok := w.pass(r.Context()); !ok || k != nil && k.drop {
		w.locked(func() { w.dropped++ })
		return nil, errCut
	}
	return cmp.Or(over, resp), nil
}

// stray draws whether the proxy answers by itself: instead of the node, or in place of its answer.
func (w *way) stray(r *http.Request) (early, late *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.strays == 0 || w.rng.Intn(w.strays) > 0 {
		return nil, nil
	}
	w.strayed++
	resp := &http.Response{
		StatusCode: strays[w.rng.Intn(len(strays))], Proto: r.Proto, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/html"}, "Location": {"/sign-in"}, "Retry-After": {strconv.Itoa(w.rng.Intn(strayMax))}},
		Body:   io.NopCloser(strings.NewReader("<html>The proxy says no.</html>")),
	}
	if w.rng.Intn(2) == 0 {
		return resp, nil
	}
	return nil, resp
}

// ask sends the request to the node, and returns the complete answer.
func (w *way) ask(r *http.Request, body []byte, k *strike) (*http.Response, error) {
	if r.Body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
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
	resp, err := w.http.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer, err := readBody(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	return resp, err
}

// readBody reads a body to its end; it returns nil for an empty one.
func readBody(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(io.LimitReader(body, bodyBytesMax))
	return b, errors.Join(err, body.Close())
}

// add adds the counts to the report.
func (w *way) add(r *Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.late += w.late
	r.dropped += w.dropped
	r.strayed += w.strayed
	for kind, n := range w.counts {
		r.kinds[string(kind)] += n
	}
}
