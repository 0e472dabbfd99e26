package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/internal/httplog"
)

// Calls between nodes are requests in HTTP: POST /peer/NAME, with JSON in both directions.

// The open calls, which nodes that are not members may make, too. Packages joining and cluster answer them.
const (
	CallMeet     = "meet"     // nodes of one list meet
	CallJoin     = "join"     // a node asks to become a member
	CallWho      = "who"      // a leader asks a node, before it makes it a member, who it is
	CallAdmitted = "admitted" // a leader tells a node that it is a member now
	CallStanding = "standing" // a node asks whether it is still a member
)

// isOpenCall reports whether a call is answered to any node that completed the handshake. All
// others are answered only to members.
func isOpenCall(call string) bool { return isForAnyNode(call) || call == CallStanding }

// isForAnyNode reports whether a call is addressed to any node at an address. All others are
// addressed to the member that is known to be there.
func isForAnyNode(call string) bool {
	switch call {
	case CallMeet, CallJoin, CallWho, CallAdmitted:
		return true
	}
	return false
}

// QuestionError says what is wrong with a question, which the asker must change. It is
// answered with status 400.
type QuestionError string

// Error returns the text.
func (e QuestionError) Error() string { return string(e) }

// ReadQuestion decodes the body of a call. Errors: a QuestionError.
func ReadQuestion[T any](body []byte) (q T, err error) {
	if err := json.Unmarshal(body, &q); err != nil {
		return q, QuestionError("the question is malformed: " + err.Error())
	}
	return q, nil
}

// Bounds of calls between nodes, and of forwarded requests (stream.go).
const (
	// forwardBodyMax bounds the body of a forwarded request: the API's 8 MiB and slack.
	forwardBodyMax = 8<<20 + 64<<10
	// forwardAnswerMax bounds the answer: tasks stop at 8 MiB, which base64, escapes and field
	// names may enlarge.
	forwardAnswerMax = 32 << 20
	// forwardHeaderMax bounds the headers of a request or an answer. It must be no less than what
	// the API accepts.
	forwardHeaderMax = 16 << 10
	// callBodyMax bounds the body and the answer of a call between nodes.
	callBodyMax = 1 << 20
	// callTimeoutMax bounds a call whose context has no deadline, and the time that its handler may
	// take.
	callTimeoutMax = 30 * time.Second
	// meetBodyMax bounds the body of a call from a node without membership.
	meetBodyMax = 64 << 10

	readTimeout  = 30 * time.Second // for one complete request
	writeTimeout = 30 * time.Second // for one complete answer
	// idleTimeout is well above connIdleTimeout, so that the dialer closes idle connections and no
	// request meets a closed one.
	idleTimeout = 5 * connIdleTimeout

	callPathPrefix = "/peer/"
)

// CallHandler answers one kind of call between nodes. from is the other node as proven when its
// connection opened: a member, unless the call is open. body is only valid until the handler
// returns. ctx ends with the port, and after callTimeoutMax. A QuestionError is answered with
// status 400, any other error with 500.
type CallHandler func(ctx context.Context, from Hello, body []byte) ([]byte, error)

// CallError is returned by Call when the other node answered with an error. Any other error of Call
// means that no complete answer arrived.
type CallError struct {
	Addr   string // of the node that answered
	Call   string
	Status int // HTTP status
	Text   string
}

// Error names the call, the node and its answer.
func (e *CallError) Error() string {
	return fmt.Sprintf("call %s: node at %s answers: %s", e.Call, e.Addr, e.Text)
}

// SetForwardHandler sets the handler for forwarded API requests. Until it is set they get 503.
func (p *Port) SetForwardHandler(h fasthttp.RequestHandler) { p.forward.Store(&h) }

// Handle sets the handler for calls of that name, replacing an earlier one.
func (p *Port) Handle(name string, h CallHandler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls[name] = h
}

// Call is Ask without the answering node.
func (p *Port) Call(ctx context.Context, addr, name string, body []byte) ([]byte, error) {
	answer, _, err := p.Ask(ctx, addr, name, body)
	return answer, err
}

// Ask calls the node at addr and returns its answer, which the caller owns, and the node that
// answered. Bodies are JSON of at most callBodyMax. A *CallError is the other node's refusal; after
// any other error the call may or may not have been answered.
func (p *Port) Ask(ctx context.Context, addr, name string, body []byte) (answer []byte, by Hello, err error) {
	if len(body) > callBodyMax {
		return nil, by, fmt.Errorf("call %s: body of %s is over the bound of %s", name, bytesize.Text(int64(len(body))), bytesize.Text(callBodyMax))
	}
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetHost(addr)
	req.Header.SetRequestURI(callPathPrefix + name)
	req.Header.SetContentType("application/json")
	req.SetBodyRaw(body)
	if isOpenCall(name) {
		by, err = p.exchangeMeet(ctx, addr, name, req, resp)
	} else {
		by, err = p.exchange(ctx, addr, req, resp)
	}
	if err != nil {
		return nil, by, fmt.Errorf("call %s: %w", name, err)
	}
	if len(resp.Body()) > callBodyMax {
		return nil, by, fmt.Errorf("call %s: answer of %s is over the bound of %s", name, bytesize.Text(int64(len(resp.Body()))), bytesize.Text(callBodyMax))
	}
	if status := resp.StatusCode(); status != fasthttp.StatusOK {
		return nil, by, &CallError{Addr: addr, Call: name, Status: status, Text: errorText(resp.Body())}
	}
	return append([]byte(nil), resp.Body()...), by, nil
}

// exchangeMeet is exchange for an open call, over a separate connection.
func (p *Port) exchangeMeet(ctx context.Context, addr, name string, req *fasthttp.Request, resp *fasthttp.Response) (by Hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeoutMax)
	defer cancel()
	want := ""
	if !isForAnyNode(name) {
		if want = p.cfg.TargetUUID(addr); want == "" {
			return by, fmt.Errorf("no member is known to be at %s", addr)
		}
	}
	conn, err := p.dial(ctx, addr, PurposeMeet, want)
	if err != nil {
		return by, err
	}
	defer conn.Close()
	_, err = newPooledConn(conn).roundTrip(ctx, req, resp)
	return conn.other, err
}

// exchange sends req to the member at addr and reads the answer of by.
func (p *Port) exchange(ctx context.Context, addr string, req *fasthttp.Request, resp *fasthttp.Response) (by Hello, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeoutMax)
	defer cancel()
	pool := p.acquirePool(addr)
	defer p.releasePool(pool)
	c, err := pool.get(ctx)
	if err != nil {
		return by, err
	}
	by = c.other
	reusable, err := c.roundTrip(ctx, req, resp)
	pool.put(c, reusable)
	return by, err
}

// newServer returns the server for connections of purpose http. It never listens: the port hands it
// connections after their handshake.
func newServer(p *Port) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:            p.handleHTTP,
		ErrorHandler:       answerBroken,
		Name:               "claimq-peer",
		Concurrency:        inboundConnsMax,
		ReadBufferSize:     forwardHeaderMax,
		ReadTimeout:        readTimeout,
		WriteTimeout:       writeTimeout,
		IdleTimeout:        idleTimeout,
		MaxRequestBodySize: forwardBodyMax,
		// A body is JSON whatever its Content-Type says.
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		Logger:                       httplog.Logger{Log: p.log, Message: "peer port"},
	}
}

// newMeetServer returns the server for connections of purpose meet, each with one small call.
func newMeetServer(p *Port) *fasthttp.Server {
	s := newServer(p)
	s.Handler = p.handleMeet
	s.MaxRequestBodySize = meetBodyMax
	s.DisableKeepalive = true
	return s
}

// serveMeet answers the one call on c, from any node, and closes c.
func (p *Port) serveMeet(c *peerConn) {
	p.mu.Lock()
	place := p.meeting.PushBack(c)
	var oldest *peerConn
	if p.meeting.Len() > meetsMax {
		oldest = p.meeting.Remove(p.meeting.Front()).(*peerConn)
	}
	p.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	_ = p.meets.ServeConn(c)
	_ = c.Close()
	p.mu.Lock()
	p.meeting.Remove(place) // no effect if it was cut off
	p.mu.Unlock()
}

// handleMeet answers an open call.
func (p *Port) handleMeet(ctx *fasthttp.RequestCtx) {
	name, ok := strings.CutPrefix(string(ctx.Request.Header.RequestURI()), callPathPrefix)
	if !ok || !isOpenCall(name) {
		answerError(ctx, fasthttp.StatusNotFound, "not_found", "a node that is not a member of the cluster has no such call")
		return
	}
	p.handleCall(ctx, name)
}

// handleHTTP answers calls of members.
func (p *Port) handleHTTP(ctx *fasthttp.RequestCtx) {
	// Use the path as sent, because a percent-encoded slash is not a slash.
	name, ok := strings.CutPrefix(string(ctx.Request.Header.RequestURI()), callPathPrefix)
	if !ok {
		answerError(ctx, fasthttp.StatusNotFound, "not_found", "no such call")
		return
	}
	p.handleCall(ctx, name)
	if c, ok := ctx.Conn().(*peerConn); ok && c.retired.Load() {
		ctx.SetConnectionClose()
	}
}

// answerForwarded answers an API request that the node from has forwarded.
func (p *Port) answerForwarded(ctx *fasthttp.RequestCtx, from Hello) {
	handler := p.forward.Load()
	switch {
	case !p.isMember(from):
		// Another node may know better, or the members known here may be out of date.
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
		answerError(ctx, fasthttp.StatusServiceUnavailable, "no_leader", "node "+strconv.Quote(from.NodeID)+" is not a member of the cluster and cannot pass requests on")
		return
	case handler == nil:
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
		answerError(ctx, fasthttp.StatusServiceUnavailable, "no_leader", "this node is starting")
		return
	}
	(*handler)(ctx)
}

func (p *Port) handleCall(ctx *fasthttp.RequestCtx, name string) {
	p.mu.Lock()
	handler := p.calls[name]
	p.mu.Unlock()
	from, ok := peerOf(ctx)
	switch {
	case ok && !isOpenCall(name) && !p.isMember(from):
		answerError(ctx, fasthttp.StatusForbidden, "forbidden", fmt.Sprintf("call %q: %v", name, NotMember(from)))
		return
	case handler == nil || !ok:
		answerError(ctx, fasthttp.StatusNotFound, "not_found", "no such call: "+Printable(string(cutText(name, helloFieldMax))))
		return
	case !ctx.IsPost():
		answerError(ctx, fasthttp.StatusMethodNotAllowed, "method_not_allowed", "calls are POST")
		return
	case len(ctx.Request.Body()) > callBodyMax:
		answerError(ctx, fasthttp.StatusRequestEntityTooLarge, "payload_too_large", "the call's body is over "+bytesize.Text(callBodyMax))
		return
	}
	callCtx, cancel := context.WithTimeout(p.ctx, callTimeoutMax)
	defer cancel()
	answer, err := handler(callCtx, from, ctx.Request.Body())
	if wrong := QuestionError(""); errors.As(err, &wrong) {
		answerError(ctx, fasthttp.StatusBadRequest, "invalid_request", wrong.Error())
		return
	}
	if err != nil {
		answerError(ctx, fasthttp.StatusInternalServerError, "internal", err.Error())
		return
	}
	if len(answer) > callBodyMax {
		answerError(ctx, fasthttp.StatusInternalServerError, "internal", "the call's answer is over "+bytesize.Text(callBodyMax))
		return
	}
	ctx.SetContentType("application/json")
	ctx.Response.SetBody(answer)
}

// peerOf returns the node that sent the request on the peer port.
func peerOf(ctx *fasthttp.RequestCtx) (Hello, bool) {
	c, ok := ctx.Conn().(*peerConn)
	if !ok {
		return Hello{}, false
	}
	return c.other, true
}

// peerAnswer is the body of an error answer.
type peerAnswer struct {
	Success bool   `json:"success"`
	Error   string `json:"error"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func answerError(ctx *fasthttp.RequestCtx, status int, code, text string) {
	setError(&ctx.Response, status, code, text)
}

func setError(resp *fasthttp.Response, status int, code, text string) {
	// Strings always encode.
	body, _ := json.Marshal(peerAnswer{Error: text, Code: code, Message: text})
	resp.SetStatusCode(status)
	resp.Header.SetContentType("application/json")
	resp.SetBody(body)
}

// answerBroken answers malformed requests and those beyond a bound.
func answerBroken(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	if errors.Is(err, fasthttp.ErrBodyTooLarge) || errors.As(err, &small) {
		answerError(ctx, fasthttp.StatusRequestEntityTooLarge, "payload_too_large", "the request is over a bound of the peer port")
		return
	}
	answerError(ctx, fasthttp.StatusBadRequest, "invalid_request", "the request is malformed")
}

// errorText returns the error in the body of an answer, safe to log.
func errorText(body []byte) string {
	var answer peerAnswer
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		return Printable(answer.Error)
	}
	return Printable(string(cutText(string(body), refusalBytesMax)))
}
