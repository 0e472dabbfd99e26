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

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
	"github.com/claimq/claimq/nodes"
)

const (
	// savesMax bounds the backups that a node sends at the same time.
	savesMax = 2
	// saveTimeMax bounds how long sending a backup may take, because until then what changes of its state is kept
	// twice.
	saveTimeMax = 10 * time.Minute
	// saveRateMax bounds the rate of sending a backup, in bytes per second.
	saveRateMax = 100 << 20
	// savePiece bounds the bytes of one write.
	savePiece = 1 << 20
)

// takeSnapshot answers POST /api/snapshots.
func takeSnapshot(r *request) {
	if len(r.input()) > 0 {
		d := r.decoder()
		defer d.Free()
		if bad := d.Fields(d.Unknown); bad != nil {
			r.refuse(bad)
			return
		}
	}
	ctx, cancel := r.slowCtx()
	defer cancel()
	index, err := r.node().TakeSnapshot(ctx)
	if err != nil {
		r.refuseError(err)
		return
	}
	r.tell(event.SnapshotTaken, "at index "+strconv.FormatUint(index, 10))
	sendIndexed(r, index)
}

// sendIndexed answers success with an index of the log.
func sendIndexed(r *request, index uint64) {
	b := jsonout.UintField(r.buffer(), `{"success":true,"index":`, index)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// backups tracks the backups that a node sends and receives.
type backups struct {
	saving chan struct{} // one element for each backup being sent
	// uploading counts the requests whose connection was taken over.
	uploading sync.WaitGroup
}

// newBackups returns backups with none under way.
func newBackups() *backups { return &backups{saving: make(chan struct{}, savesMax)} }

// wait waits until the requests whose connection was taken over have been answered.
func (b *backups) wait() { b.uploading.Wait() }

// save answers GET /api/snapshots/latest.
func (b *backups) save(r *request) {
	s := r.core
	select {
	case b.saving <- struct{}{}:
	default:
		r.refuse(refuse.Overloaded("", "This node is sending "+strconv.Itoa(savesMax)+" backups already"))
		return
	}
	backup, err := s.node.SaveBackup(r.ctx(), r.asked.stale)
	if err != nil {
		<-b.saving
		r.refuseCode(err)
		return
	}
	index := strconv.FormatUint(backup.Info.Index, 10)
	resp := &r.http.Response
	resp.Header.SetContentType("application/octet-stream")
	resp.Header.Set("Content-Disposition", `attachment; filename="claimq-`+index+`.backup"`)
	resp.Header.Set("Cache-Control", "no-store")
	r.setIndex(backup.Info.Index)
	resp.SetConnectionClose()
	resp.SetBodyStream(&backupStream{
		server: s, saving: b.saving, conn: r.http.Conn(), backup: backup,
		by: r.operator(), index: index, to: r.http.RemoteIP().String(), plain: plain(r),
	}, -1)
	resp.ImmediateHeaderFlush = true
}

// backupStream is the body of an answer that is a backup. Like a stream of events it writes to the connection itself,
// in the connection's goroutine.
type backupStream struct {
	server *core
	saving chan struct{}
	conn   net.Conn
	backup *fsm.Backup
	by     nodes.Operator
	index  string // of the log
	to     string // the receiver's address
	plain  bool   // sent without chunks
	once   sync.Once

	ctx   context.Context // ends with the server's serving, or after saveTimeMax
	start time.Time
	sent  int64
}

// Read sends the backup. It returns io.EOF once all of it was sent.
func (b *backupStream) Read([]byte) (int, error) {
	ctx, cancel := context.WithTimeout(b.server.serving, saveTimeMax)
	defer cancel()
	if conn, ok := b.conn.(*door.Conn); ok {
		b.conn = conn.Lend()
		defer conn.Return(streamEndTimeout) // for the end of the body
	}
	b.tell(event.BackupBegun, "at index "+b.index)
	b.ctx, b.start = ctx, time.Now()
	defer context.AfterFunc(ctx, func() { _ = b.conn.SetWriteDeadline(time.Now()) })()
	_, err := b.backup.WriteTo(b)
	if err != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	b.backup.Release() // before telling the trail, which may take a while
	sent := strconv.FormatInt(b.sent, 10) + " bytes"
	if err != nil {
		b.tell(event.BackupBroken, "at index "+b.index+", after "+sent)
		return 0, err
	}
	b.tell(event.BackupSaved, "at index "+b.index+", "+sent)
	return 0, io.EOF
}

// tell records in the trail how it ended.
func (b *backupStream) tell(kind event.Kind, what string) {
	b.server.tell(command.Tell{Kind: kind, By: b.by.Name, What: what + ", to " + b.to}, b.by.Key)
}

// Close releases the captured state, sent or not.
func (b *backupStream) Close() error {
	b.once.Do(func() {
		b.backup.Release()
		<-b.saving
	})
	return nil
}

// Write sends p at a bounded rate, in HTTP chunks unless the client speaks HTTP/1.0.
func (b *backupStream) Write(p []byte) (int, error) {
	total := 0
	for len(p) > 0 {
		piece := p[:min(len(p), savePiece)]
		head := append(strconv.AppendInt(nil, int64(len(piece)), 16), "\r\n"...)
		if err := b.conn.SetWriteDeadline(time.Now().Add(streamWriteTimeout)); err != nil {
			return total, err
		}
		if err := b.ctx.Err(); err != nil { // it may have ended just before the deadline was set
			return total, err
		}
		buffers := net.Buffers{head, piece, []byte("\r\n")}
		if b.plain {
			buffers = net.Buffers{piece}
		}
		if _, err := buffers.WriteTo(b.conn); err != nil {
			return total, err
		}
		total += len(piece)
		b.sent += int64(len(piece))
		p = p[len(piece):]
		if err := b.pace(); err != nil {
			return total, err
		}
	}
	return total, nil
}

// pace waits while the bytes sent are ahead of the rate.
func (b *backupStream) pace() error {
	ahead := time.Duration(b.sent)*time.Second/saveRateMax - time.Since(b.start)
	if ahead < time.Millisecond {
		return nil
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	case <-timer.C:
		return nil
	}
}

// restoreSnapshot answers POST /api/restore with a body in memory. takeOver handles a backup that is still being received.
func restoreSnapshot(r *request) {
	if uploads(r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.core.serving, uploadTimeMax)
	defer cancel()
	restoreFrom(ctx, r, bytes.NewReader(r.input()))
}

// restoreFrom restores the backup in body.
func restoreFrom(ctx context.Context, r *request, body io.Reader) {
	s := r.core
	if !s.node.IsLeader() {
		redirectRestore(r)
		return
	}
	from := "from " + r.http.RemoteIP().String()
	r.tell(event.RestoreBegun, from)
	index, err := s.node.RestoreBackup(ctx, body)
	switch {
	case errors.Is(err, nodes.ErrNotLeader):
		redirectRestore(r)
	case err != nil:
		refuseRestore(r, err)
	}
	if err != nil {
		r.tell(event.RestoreBroken, from+", "+string(r.outcome.code))
		return
	}
	s.logger.Info("restored a backup", "index", index, "by", r.by())
	r.tell(event.Restored, "at index "+strconv.FormatUint(index, 10)+", "+from)
	r.setIndex(index)
	sendIndexed(r, index)
}

// redirectRestore names the leader, because this node cannot restore or forward the backup.
func redirectRestore(r *request) {
	leader := r.node().LeaderHTTPAddr()
	if leader == "" {
		r.refuse(refuse.Because(wire.CodeNoLeader))
		return
	}
	r.refuse(refuse.New(wire.CodeNoLeader, "This node does not lead: the leader at "+leader+" restores backups",
		"Send it there, to the URL in Location, which curl -L does by itself; nothing was changed"))
	r.outcome.label = "redirected"
	r.http.Response.Header.Del(fasthttp.HeaderRetryAfter)
	r.http.Response.Header.Set("Location", leader+restorePath)
	r.http.SetStatusCode(fasthttp.StatusTemporaryRedirect)
}

// refuseRestore answers with the node's error about a backup.
func refuseRestore(r *request, err error) {
	var refused *nodes.MembershipRefused
	f := &refuse.Refusal{Code: wire.CodeInvalidRequest}
	switch {
	case errors.Is(err, nodes.ErrNotEmpty):
		f.Code, f.Text = wire.CodeClusterNotEmpty, sentence(err)
		f.Advice = "Nothing was changed: restore into a new cluster, whose nodes start with empty folders"
	case errors.As(err, &refused):
		f.Code, f.Text, f.Advice = wire.CodeMembershipRefused, refused.Reason, refused.Advice
	case errors.Is(err, errUpload):
		f.Text, f.Advice = sentence(err), "Nothing was changed: send the whole backup again"
	case errors.Is(err, fsm.ErrUnknownCommand):
		f.Text = "The backup cannot be read here: " + err.Error()
		f.Advice = "Nothing was changed: run the version that wrote it, or a later one, on every node"
	case errors.Is(err, fsm.ErrDevelopment):
		f.Text = "The backup cannot be read here: " + err.Error()
		f.Advice = "Nothing was changed: only the build that made it can read it"
	case errors.Is(err, fsm.ErrCorrupt), errors.Is(err, fsm.ErrCountersUsedUp):
		f.Text = "The backup cannot be restored: " + err.Error()
		f.Advice = "Nothing was changed: use another copy; 'claimq snapshot inspect FILE' checks one"
	case errors.Is(err, nodes.ErrOverloaded):
		f = refuse.Because(wire.CodeOverloaded)
		f.Text = sentence(err)
		if over := (*nodes.Overload)(nil); errors.As(err, &over) {
			f.Reason = fsm.Reason(over.Bound)
		}
	case errors.Is(err, nodes.ErrOutcomeUnknown):
		f = refuse.Because(wire.CodeOutcomeUnknown)
		f.Advice = "Once there is a leader, look with 'claimq stats' whether the tasks are there; if they are not, restore again"
		r.core.logger.Error("restore", "error", err)
	default:
		r.refuseCode(err)
		return
	}
	r.refuse(f)
}

// sentence capitalizes an error's text.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// The HTTP server reads a request's body into memory before its handler runs, but a backup may be larger than memory.
// The body of POST /api/restore, and only that, is therefore hidden from it: when the header has been read, it is
// changed so that the server sees a request without a body. After the usual checks the connection is taken over from
// the server, with the body still unread. Other requests pay only for a check of their path.

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

// hideUpload hides the body of a restore. It is called with each request's header before its body is read.
func hideUpload(h *fasthttp.RequestHeader) {
	uri := h.RequestURI()
	if len(uri) < len(restorePath) || uri[0] == '/' && string(uri[:len(restorePath)]) != restorePath || !h.IsPost() {
		return
	}
	if path, _ := splitURI(uri); string(path) != restorePath {
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
func uploads(r *request) bool {
	return !r.hop.forwarded && len(r.header(headerUpload)) > 0
}

// takeOver answers a request whose body was hidden, even if it was refused, in a new goroutine, and returns true. For
// other requests it returns false. The request is counted once it has been answered.
func (b *backups) takeOver(r *request) bool {
	if !uploads(r) {
		return false
	}
	length := string(r.header(headerUpload))
	own := *r
	own.id = append([]byte(nil), r.id...)
	u := &upload{request: &own, uploading: &b.uploading, left: -1}
	length, u.expected = strings.CutSuffix(length, uploadExpected)
	if length != uploadChunked {
		u.left, _ = strconv.ParseInt(length, 10, 64) // hideUpload formatted it
	}
	b.uploading.Add(1)
	r.http.HijackSetNoResponse(true)
	r.http.Hijack(u.run)
	return true
}

// upload is a request whose body is still unread in its connection.
type upload struct {
	request   *request // a copy that is in no pool
	uploading *sync.WaitGroup
	expected  bool  // the client waits to be asked for the body
	left      int64 // bytes of the body that are still to be read; -1: chunked
	conn      net.Conn
	raw       *door.Conn // conn without the bytes that the HTTP server has read already
}

// run answers the request, and then closes the connection.
func (u *upload) run(conn net.Conn) {
	s := u.request.core
	defer u.uploading.Done()
	s.metrics.InFlight.Inc()
	defer s.metrics.InFlight.Dec()
	u.conn = conn
	if c, ok := conn.(interface{ UnsafeConn() net.Conn }); ok {
		u.raw, _ = c.UnsafeConn().(*door.Conn)
	}
	if u.raw == nil {
		return // there is no other kind
	}
	u.raw.StreamBody()
	if u.request.outcome.code == "" {
		u.restore()
	}
	u.request.observe()
	u.answer()
}

// restore receives the body and restores it.
func (u *upload) restore() {
	r := u.request
	defer func() {
		if p := recover(); p != nil {
			r.core.metrics.Panics.Inc()
			r.core.logger.Error("panic while restoring a backup", "request_id", r.core.loggedID(r.id), "panic", p, "stack", string(debug.Stack()))
			r.resetAnswer()
			r.refuse(refuse.Because(wire.CodeInternal))
		}
	}()
	ctx, cancel := context.WithTimeout(r.core.serving, uploadTimeMax)
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
	if u.raw.SetDeadline(time.Now().Add(door.LingerTime)) != nil {
		return
	}
	resp := &u.request.http.Response
	resp.SetConnectionClose()
	if _, err := resp.WriteTo(u.conn); err != nil || u.raw.CloseWrite() != nil {
		return
	}
	if u.left != 0 {
		_, _ = io.Copy(io.Discard, io.LimitReader(u.conn, door.LingerBytes))
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
	if err := u.conn.SetWriteDeadline(time.Now().Add(door.WriteTimeout)); err != nil {
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
