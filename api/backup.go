package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/port"
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

// TakeSnapshot answers POST /api/snapshots.
func TakeSnapshot(r *exchange.Request) {
	if len(r.HTTP.Request.Body()) > 0 {
		d := r.Decoder()
		defer d.Free()
		if bad := d.Fields(d.Unknown); bad != nil {
			r.Refuse(bad)
			return
		}
	}
	ctx, cancel := r.ActionWait()
	defer cancel()
	index, err := r.Server.Node.TakeSnapshot(ctx)
	if err != nil {
		r.RefuseError(err)
		return
	}
	r.Tell(event.SnapshotTaken, "at index "+strconv.FormatUint(index, 10))
	sendIndexed(r, index)
}

// sendIndexed answers success with an index of the log.
func sendIndexed(r *exchange.Request, index uint64) {
	b := jsonout.UintField(r.Body(), `{"success":true,"index":`, index)
	r.Send(fasthttp.StatusOK, append(b, '}'))
}

// Backups tracks the backups that a node sends and receives.
type Backups struct {
	saving chan struct{} // one element for each backup being sent
	// uploading counts the requests whose connection was taken over.
	uploading sync.WaitGroup
}

// NewBackups returns Backups with none under way.
func NewBackups() *Backups { return &Backups{saving: make(chan struct{}, savesMax)} }

// Wait waits until the requests whose connection was taken over have been answered.
func (b *Backups) Wait() { b.uploading.Wait() }

// Save answers GET /api/snapshots/latest.
func (b *Backups) Save(r *exchange.Request) {
	s := r.Server
	select {
	case b.saving <- struct{}{}:
	default:
		r.Refuse(refuse.Overloaded("", "This node is sending "+strconv.Itoa(savesMax)+" backups already"))
		return
	}
	backup, err := s.Node.SaveBackup(r.Wait(), r.Stale)
	if err != nil {
		<-b.saving
		r.RefuseCode(err)
		return
	}
	index := strconv.FormatUint(backup.Info.Index, 10)
	resp := &r.HTTP.Response
	resp.Header.SetContentType("application/octet-stream")
	resp.Header.Set("Content-Disposition", `attachment; filename="claimq-`+index+`.backup"`)
	resp.Header.Set("Cache-Control", "no-store")
	r.SetIndex(backup.Info.Index)
	resp.SetConnectionClose()
	resp.SetBodyStream(&backupStream{
		server: s, saving: b.saving, conn: r.HTTP.Conn(), backup: backup,
		by: r.Operator(), index: index, to: r.HTTP.RemoteIP().String(), plain: plain(r),
	}, -1)
	resp.ImmediateHeaderFlush = true
}

// backupStream is the body of an answer that is a backup. Like a stream of events it writes to the connection itself,
// in the connection's goroutine.
type backupStream struct {
	server *exchange.Host
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
	ctx, cancel := context.WithTimeout(b.server.Serving, saveTimeMax)
	defer cancel()
	if conn, ok := b.conn.(*port.Conn); ok {
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
	b.server.Tell(command.Tell{Kind: kind, By: b.by.Name, What: what + ", to " + b.to}, b.by.Key)
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

// Restore answers POST /api/restore with a body in memory. TakeOver handles a backup that is still being received.
func Restore(r *exchange.Request) {
	if uploads(r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Server.Serving, uploadTimeMax)
	defer cancel()
	restoreFrom(ctx, r, bytes.NewReader(r.HTTP.Request.Body()))
}

// restoreFrom restores the backup in body.
func restoreFrom(ctx context.Context, r *exchange.Request, body io.Reader) {
	s := r.Server
	if !s.Node.IsLeader() {
		redirectRestore(r)
		return
	}
	from := "from " + r.HTTP.RemoteIP().String()
	r.Tell(event.RestoreBegun, from)
	index, err := s.Node.RestoreBackup(ctx, body)
	switch {
	case errors.Is(err, nodes.ErrNotLeader):
		redirectRestore(r)
	case err != nil:
		refuseRestore(r, err)
	}
	if err != nil {
		r.Tell(event.RestoreBroken, from+", "+string(r.Code))
		return
	}
	s.Logger.Info("restored a backup", "index", index, "by", r.By())
	r.Tell(event.Restored, "at index "+strconv.FormatUint(index, 10)+", "+from)
	r.SetIndex(index)
	sendIndexed(r, index)
}

// redirectRestore names the leader, because this node cannot restore or forward the backup.
func redirectRestore(r *exchange.Request) {
	leader := r.Server.Node.LeaderHTTPAddr()
	if leader == "" {
		r.Refuse(refuse.Because(wire.CodeNoLeader))
		return
	}
	r.Refuse(refuse.New(wire.CodeNoLeader, "This node does not lead: the leader at "+leader+" restores backups",
		"Send it there, to the URL in Location, which curl -L does by itself; nothing was changed"))
	r.Label = "redirected"
	r.HTTP.Response.Header.Del(fasthttp.HeaderRetryAfter)
	r.HTTP.Response.Header.Set("Location", leader+restorePath)
	r.HTTP.SetStatusCode(fasthttp.StatusTemporaryRedirect)
}

// refuseRestore answers with the node's error about a backup.
func refuseRestore(r *exchange.Request, err error) {
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
		r.Server.Logger.Error("restore", "error", err)
	default:
		r.RefuseCode(err)
		return
	}
	r.Refuse(f)
}

// sentence capitalizes an error's text.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
