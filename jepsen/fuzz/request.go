package fuzz

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/url"
	"regexp"
	"strings"

	"github.com/claimq/claimq/jepsen/sqs"
)

// kind says how far a request is from a valid one.
type kind int

const (
	kindValid   kind = iota // an example of the description
	kindBody                // with a changed body
	kindTarget              // with a changed path, query or method
	kindHeaders             // with odd headers
	kindRaw                 // not even HTTP, or cut in the middle
	kindPeer                // to the peer port
	kindCount
)

var kindNames = [kindCount]string{"valid", "changed body", "changed target", "odd headers", "no HTTP", "peer port"}

// share is the number of each kind in 100 requests.
var share = [kindCount]int{20, 30, 15, 10, 10, 15}

// pick draws a kind.
func pick(rng *rand.Rand) kind {
	n := rng.Intn(100)
	for k := range kindCount {
		if n -= share[k]; n < 0 {
			return k
		}
	}
	return kindValid
}

// request is a request to send.
type request struct {
	kind   kind
	op     string // the operation that it was derived from
	method string
	raw    []byte // head and body
	sane   bool   // it is well-formed HTTP, so it must be answered
	waits  bool   // it may ask for a late answer, or a stream
}

// rarely matches calls that are so expensive, or disturb the others for so long, that only
// one of rareShare such requests is sent.
var rarely = regexp.MustCompile(`^/api/(snapshots|snapshots/latest|restore|reload|cluster/(transfer|upgrade|hash))$`)

const rareShare = 40

// maker makes requests. It is for one goroutine.
type maker struct {
	rng  *rand.Rand
	ops  []operation
	keys []string // API keys that the nodes know, none in open mode
	seen *seen
}

// words are values for path variables and texts.
var words = []string{"mail", "t", "default", "type-1", "w1", "nightly", "%2e%2e", "a%2Fb", "%00", "%ff", "key-7", "0", "-1", "9007199254740992", "x y", "é"}

func (m *maker) word() string { return words[m.rng.Intn(len(words))] }

// make makes a request of that kind.
func (m *maker) make(k kind) request {
	if k == kindRaw {
		return m.raw()
	}
	op := &m.ops[m.rng.Intn(len(m.ops))]
	for rarely.MatchString(op.path) && m.rng.Intn(rareShare) != 0 {
		op = &m.ops[m.rng.Intn(len(m.ops))]
	}
	about := m.seen.claim(m.rng)
	method, target, body := op.method, m.target(op, about), m.body(op, about)
	switch k {
	case kindBody:
		if body == nil {
			body = []byte("{}")
		}
		body = mutate(m.rng, body)
	case kindTarget:
		method, target = m.changeTarget(method, target)
	}
	body = shorten(body)
	headers := m.headers(k, op, body)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n%s\r\n", method, target, headers)
	b.Write(body)
	return request{
		kind: k, op: op.name, method: method, raw: b.Bytes(), sane: k == kindValid || k == kindBody,
		waits: bytes.Contains(b.Bytes(), []byte("wait_ms")) || bytes.Contains(b.Bytes(), []byte("WaitTimeSeconds")) || strings.Contains(headers, "event-stream") || strings.Contains(headers, "Min-Index"),
	}
}

// body returns one of the operation's examples, with references filled in.
func (m *maker) body(op *operation, about claim) []byte {
	if len(op.bodies) == 0 {
		return nil
	}
	body := m.withHandle(op.bodies[m.rng.Intn(len(op.bodies))])
	if strings.HasPrefix(op.path, "/api/cluster/") {
		// No request may take a node out of the cluster, so names of members are removed.
		body = nodeID.ReplaceAll(body, []byte(`"node_id":"nobody"`))
		return peerAddr.ReplaceAll(body, []byte(`"peer_addr":"127.0.0.1:1"`))
	}
	if m.rng.Intn(4) == 0 {
		return body
	}
	body = claimToken.ReplaceAll(body, fmt.Appendf(nil, `"claim_token":%d`, about.token))
	if about.worker != "" {
		body = workerID.ReplaceAll(body, fmt.Appendf(nil, `"worker_id":%q`, about.worker))
	}
	return uniqueKey.ReplaceAll(body, fmt.Appendf(nil, `"${1}":"${2}-%d"`, m.rng.Intn(1000)))
}

var (
	nodeID     = regexp.MustCompile(`"node_id":"[^"]*"`)
	peerAddr   = regexp.MustCompile(`"peer_addr":"[^"]*"`)
	claimToken = regexp.MustCompile(`"claim_token":\d+`)
	workerID   = regexp.MustCompile(`"worker_id":"[^"]*"`)
	uniqueKey  = regexp.MustCompile(`"(idempotency_key|claim_request_id)":"([^"]*)"`)
	waitMS     = regexp.MustCompile(`("wait_ms":\s*|wait_ms=)\d+`)
	variable   = regexp.MustCompile(`\{[a-z_]+\}`)
)

// waitMax is the longest wait that a request asks for, in ms.
const waitMax = "40"

func shorten(b []byte) []byte { return waitMS.ReplaceAll(b, []byte("${1}"+waitMax)) }

// target returns the operation's path with its variables filled in, and a query.
func (m *maker) target(op *operation, about claim) string {
	path := variable.ReplaceAllStringFunc(op.path, func(name string) string {
		if name == "{id}" && m.rng.Intn(10) != 0 {
			return fmt.Sprint(about.id)
		}
		return strings.ReplaceAll(m.word(), " ", "%20")
	})
	var query []string
	for _, p := range op.query {
		if m.rng.Intn(4) == 0 {
			query = append(query, p.name+"="+url.QueryEscape(p.values[m.rng.Intn(len(p.values))]))
		}
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	return string(shorten([]byte(path)))
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "X", "GETGETGETGETGETGETGETGET"}

// changeTarget changes the method, the path or the query.
func (m *maker) changeTarget(method, target string) (string, string) {
	if m.rng.Intn(2) == 0 {
		method = methods[m.rng.Intn(len(methods))]
	}
	switch m.rng.Intn(6) {
	case 0:
		target = string(mutateBytes(m.rng, []byte(target)))
		target = strings.NewReplacer("\r", "", "\n", "", " ", "%20").Replace(target)
	case 1:
		target += "/" + m.word()
	case 2:
		target += "?" + m.word() + "=" + m.word()
	case 3:
		target = "/" + strings.Repeat("a/", m.rng.Intn(4000))
	case 4:
		target = "http://nobody.example" + target
	}
	return method, target
}

// headers returns the lines of a request's headers.
func (m *maker) headers(k kind, op *operation, body []byte) string {
	host := "127.0.0.1"
	var b strings.Builder
	if m.rng.Intn(4) == 0 {
		m.oddHeader(&b, k)
	}
	if k == kindHeaders {
		for range 1 + m.rng.Intn(4) {
			m.oddHeader(&b, k)
		}
		if m.rng.Intn(4) == 0 {
			host = m.word()
		}
	}
	fmt.Fprintf(&b, "Host: %s\r\n", host)
	switch {
	case len(m.keys) == 0:
	case op.header == "":
		fmt.Fprintf(&b, "X-API-Key: %s\r\n", m.keys[m.rng.Intn(len(m.keys))])
	case m.rng.Intn(8) != 0:
		b.WriteString(sqs.Headers(host, body))
	}
	b.WriteString(op.header)
	if body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	return b.String()
}

// oddHeader writes a header that has an effect, or looks as if it had.
func (m *maker) oddHeader(b *strings.Builder, k kind) {
	fine := []string{
		"X-Claimq-Redirect: 1", "X-Claimq-Min-Index: 1", "Accept: text/event-stream", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0, *",
		"Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "X-Request-ID: fuzz", "Content-Type: text/html", "Last-Event-ID: 1.0",
		"X-Claimq-Key: root", "X-Claimq-Role: operator", "X-Claimq-Types: mail", "X-Forwarded-For: 10.0.0.1",
	}
	if k != kindHeaders {
		b.WriteString(fine[m.rng.Intn(len(fine))] + "\r\n")
		return
	}
	bad := []string{
		"X-Claimq-Min-Index: 99999999999", "X-Claimq-Min-Index: x", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip",
		"Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999", "Expect: 100-continue", "Expect: more", "Connection: close", "Connection: upgrade\r\nUpgrade: h2c",
		"Authorization: Bearer x", "Authorization: Basic eDp5", "X-API-Key: \x01\x02", "X-Request-ID: " + strings.Repeat("r", 3000), "Cookie: " + strings.Repeat("c", 20_000),
		"X-Claimq-Forwarded: 1", "Host: other", "Last-Event-ID: -1.9", "Traceparent: zz", ": empty", "no colon", " folded: x", "Content-Encoding: gzip", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
	}
	if m.rng.Intn(3) == 0 {
		b.WriteString(fine[m.rng.Intn(len(fine))] + "\r\n")
		return
	}
	b.WriteString(bad[m.rng.Intn(len(bad))] + "\r\n")
}

// raw returns something that is not a request, or only a part of one.
func (m *maker) raw() request {
	r := m.make(kindBody)
	r.kind, r.sane = kindRaw, false
	switch m.rng.Intn(5) {
	case 0:
		r.raw = randomBytes(m.rng, 2000)
	case 1:
		r.raw = r.raw[:m.rng.Intn(len(r.raw))]
	case 2:
		r.raw = mutateBytes(m.rng, r.raw)
	case 3: // two in one
		r.raw = append(bytes.Clone(r.raw), r.raw...)
	default: // chunks, some of them broken
		head, body, _ := bytes.Cut(r.raw, []byte("\r\n\r\n"))
		head = append(contentLength.ReplaceAll(head, nil), "\r\nTransfer-Encoding: chunked\r\n\r\n"...)
		chunked := fmt.Appendf(head, "%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		if m.rng.Intn(2) == 0 {
			chunked = mutateBytes(m.rng, chunked)
		}
		r.raw = chunked
	}
	r.raw = shorten(r.raw)
	return r
}

var contentLength = regexp.MustCompile(`\r\nContent-Length: \d+`)
