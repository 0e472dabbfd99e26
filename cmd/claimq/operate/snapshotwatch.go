package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// ask makes the request at a URL. Until deadline the node may begin an answer or ask for the body. The request, and
// later the reading of the answer, ends when the node is silent for too long. sent says whether a byte of the body
// may have arrived.
func (t *transfer) ask(ctx context.Context, method, target string, body *transferBody, deadline time.Time) (resp *http.Response, sent bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := newWatch(cancel, min(t.silence, time.Until(deadline)))
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	upload := &watchedUpload{watch: w, silence: t.silence}
	if err == nil && body != nil {
		upload.ReadCloser, err = body.open()
		upload.left.Store(body.size)
		req.Body, req.ContentLength = upload, body.size
		req.Header.Set("Expect", "100-continue") // the node may refuse it or redirect it before the body is sent
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	if err == nil {
		if key := t.key(); key != "" {
			req.Header.Set("X-API-Key", key)
		}
		resp, err = t.http.Do(req)
	}
	w.timer.Stop()
	sent = upload.sent.Load()
	if err != nil {
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, sent, err
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, watch: w, silence: t.silence}
	return resp, sent, nil
}

// watch ends a request when its time has run out.
type watch struct {
	timer    *time.Timer
	patience atomic.Int64 // the last setting of the timer
}

func newWatch(end context.CancelCauseFunc, patience time.Duration) *watch {
	w := &watch{}
	w.patience.Store(int64(patience))
	w.timer = time.AfterFunc(patience, func() { end(silentError(w.patience.Load())) })
	return w
}

func (w *watch) reset(patience time.Duration) {
	w.patience.Store(int64(patience))
	w.timer.Reset(patience)
}

// silentError is the reason for ending a request to a silent node. Its value is the silence.
type silentError time.Duration

func (e silentError) Error() string {
	return fmt.Sprintf("the node sent nothing for %v", time.Duration(e).Round(time.Millisecond))
}

// causeOf returns the reason why the request was ended for silence, or else err.
func causeOf(ctx context.Context, err error) error {
	var silent silentError
	if errors.As(context.Cause(ctx), &silent) {
		return silent
	}
	return err
}

// watchedUpload is the body of a request. The transport may still read it after the answer has come.
type watchedUpload struct {
	io.ReadCloser
	watch   *watch
	silence time.Duration // how long the node may take for the bytes of one read
	sent    atomic.Bool   // a read has begun
	left    atomic.Int64  // bytes still unread
}

// Read implements io.Reader.
func (u *watchedUpload) Read(p []byte) (int, error) {
	u.sent.Store(true)
	n, err := u.ReadCloser.Read(p)
	if u.left.Add(-int64(n)) > 0 {
		u.watch.reset(u.silence)
	} else {
		u.watch.reset(transferAnswer)
	}
	return n, err
}

// watchedBody is the body of an answer.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context // the request's
	cancel  context.CancelCauseFunc
	watch   *watch
	silence time.Duration // how long one read may take
}

// Read implements io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.reset(b.silence)
	defer b.watch.timer.Stop()
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *watchedBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
