package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/port"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
)

// The HTTP server reads a request's body into memory before its handler runs, but a backup may be larger than memory.
// The body of POST /api/restore, and only that, is therefore hidden from it: when the header has been read, it is
// changed into that of a request without a body. After the usual checks the connection is taken over from the server,
// with the body still unread. Other requests pay only for a check of their path.

const (
	restorePath = "/api/restore"
	// uploadTimeMax bounds how long receiving and restoring a backup may take.
	uploadTimeMax = time.Hour
	// uploadSilenceMax limits how long its sender may pause.
	uploadSilenceMax = 30 * time.Second

	// headerUpload holds the length of the hidden body, in bytes or as "chunked", followed by a space and "expected"
	// if the client waits to be asked for it.
	headerUpload   = "X-Claimq-Upload"
	uploadChunked  = "chunked"
	uploadExpected = " expected"
)

// errUpload is returned when a body did not arrive whole.
var errUpload = errors.New("the backup did not arrive whole")

// HideUpload hides the body of a restore. It is called with each request's header before its body is read.
func HideUpload(h *fasthttp.RequestHeader) {
	uri := h.RequestURI()
	if len(uri) < len(restorePath) || uri[0] == '/' && string(uri[:len(restorePath)]) != restorePath || !h.IsPost() {
		return
	}
	if path, _ := exchange.SplitURI(uri); string(path) != restorePath {
		return
	}
	length := uploadChunked
	if n := h.ContentLength(); n != -1 {
		length = strconv.Itoa(max(n, 0))
	}
	if expect := h.Peek(fasthttp.HeaderExpect); bytes.EqualFold(expect, []byte("100-continue")) {
		length += uploadExpected
		h.Del(fasthttp.HeaderExpect)
	}
	h.SetContentLength(0)
	h.Set(headerUpload, length)
}

// uploads reports whether the request's body was hidden.
func uploads(r *exchange.Request) bool {
	return !r.Forwarded && len(r.HTTP.Request.Header.Peek(headerUpload)) > 0
}

// TakeOver answers a request whose body was hidden, even if it was refused, in a new goroutine, and returns true. For
// other requests it returns false. The request is counted once it has been answered.
func (b *Backups) TakeOver(r *exchange.Request) bool {
	if !uploads(r) {
		return false
	}
	length := string(r.HTTP.Request.Header.Peek(headerUpload))
	own := *r
	own.ID = append([]byte(nil), r.ID...)
	u := &upload{request: &own, uploading: &b.uploading, left: -1}
	length, u.expected = strings.CutSuffix(length, uploadExpected)
	if length != uploadChunked {
		u.left, _ = strconv.ParseInt(length, 10, 64) // HideUpload formatted it
	}
	b.uploading.Add(1)
	r.HTTP.HijackSetNoResponse(true)
	r.HTTP.Hijack(u.run)
	return true
}

// upload is a request whose body is still unread in its connection.
type upload struct {
	request   *exchange.Request // a copy that is in no pool
	uploading *sync.WaitGroup
	expected  bool  // the client waits to be asked for the body
	left      int64 // bytes of the body that are still to be read; -1: chunked
	conn      net.Conn
	raw       *port.Conn // conn without the bytes that the HTTP server has read already
}

// run answers the request, and then closes the connection.
func (u *upload) run(conn net.Conn) {
	s := u.request.Server
	defer u.uploading.Done()
	s.Metrics.InFlight.Inc()
	defer s.Metrics.InFlight.Dec()
	u.conn = conn
	if c, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		u.raw, _ = c.UnsafeConn().(*port.Conn)
	}
	if u.raw == nil {
		return // there is no other kind
	}
	u.raw.StreamBody()
	if u.request.Code == "" {
		u.restore()
	}
	u.request.Count()
	u.answer()
}

// restore receives the body and restores it.
func (u *upload) restore() {
	r := u.request
	defer func() {
		if p := recover(); p != nil {
			r.Server.Metrics.Panics.Inc()
			r.Server.Logger.Error("panic while restoring a backup", "request_id", r.Server.LoggedID(r.ID), "panic", p, "stack", string(debug.Stack()))
			r.ResetAnswer()
			r.Refuse(refuse.Because(wire.CodeInternal))
		}
	}()
	ctx, cancel := context.WithTimeout(r.Server.Serving, uploadTimeMax)
	defer cancel()
	// A sender that pauses must not hold up a server that drains.
	defer context.AfterFunc(ctx, func() { _ = u.raw.Conn.SetReadDeadline(time.Now()) })()
	body := &uploadBody{ctx: ctx, upload: u}
	restoreFrom(ctx, r, body)
}

// answer sends the answer, and reads on for a moment, because closing a connection with unread bytes would reset it
// and the client might not get the answer.
func (u *upload) answer() {
	u.raw.ReadingMoved() // a read may have been aborted
	if u.raw.SetDeadline(time.Now().Add(port.LingerTime)) != nil {
		return
	}
	resp := &u.request.HTTP.Response
	resp.SetConnectionClose()
	if _, err := resp.WriteTo(u.conn); err != nil || u.raw.CloseWrite() != nil {
		return
	}
	if u.left != 0 {
		_, _ = io.Copy(io.Discard, io.LimitReader(u.conn, port.LingerBytes))
	}
}

// uploadBody reads exactly the body of an upload.
type uploadBody struct {
	ctx     context.Context
	upload  *upload
	begun   bool
	chunked io.Reader // nil: the body has a length
}

// Read asks the client for the body on its first call. Errors: errUpload, wrapped; ctx's cause.
func (b *uploadBody) Read(p []byte) (int, error) {
	u := b.upload
	if !b.begun {
		b.begun = true
		if u.left < 0 {
			b.chunked = httputil.NewChunkedReader(bufio.NewReader(timedReader{u}))
		}
		if err := u.ask(); err != nil {
			return 0, fmt.Errorf("%w: %w", errUpload, err)
		}
	}
	var n int
	var err error
	switch {
	case b.chunked != nil:
		if n, err = b.chunked.Read(p); errors.Is(err, io.EOF) {
			u.left = 0
		}
	case u.left == 0:
		return 0, io.EOF
	default:
		n, err = timedReader{u}.Read(p[:min(int64(len(p)), u.left)])
		u.left -= int64(n)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
	}
	switch {
	case err == nil || err == io.EOF: //nolint:errorlint // io.Reader's own, never wrapped
		return n, err
	case b.ctx.Err() != nil:
		return n, context.Cause(b.ctx)
	}
	return n, fmt.Errorf("%w: %w", errUpload, err)
}

// ask tells a client that waits for it to send the body.
func (u *upload) ask() error {
	if !u.expected {
		return nil
	}
	if err := u.conn.SetWriteDeadline(time.Now().Add(port.WriteTimeout)); err != nil {
		return err
	}
	_, err := u.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	return err
}

// timedReader reads from an upload's connection, with uploadSilenceMax as its timeout.
type timedReader struct{ upload *upload }

func (t timedReader) Read(p []byte) (int, error) {
	if err := t.upload.conn.SetReadDeadline(time.Now().Add(uploadSilenceMax)); err != nil {
		return 0, err
	}
	return t.upload.conn.Read(p)
}
