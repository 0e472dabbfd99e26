package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// download makes a request without a body at a URL, which may take until deadline to be
// answered. It ends, the reading of the answer too, when the node is silent for too long.
func (t *transfer) download(ctx context.Context, method, target string, deadline time.Time) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	patience := min(t.silence, time.Until(deadline))
	watch := time.AfterFunc(patience, func() { cancel(silentError(patience)) })
	resp, err := t.do(req)
	watch.Stop()
	if err != nil {
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, silence: t.silence}
	return resp, nil
}

// silentError is why a download was ended whose node sent nothing for so long.
type silentError time.Duration

func (e silentError) Error() string {
	return fmt.Sprintf("the node sent nothing for %v", time.Duration(e).Round(time.Millisecond))
}

// causeOf is err, or why the download was ended if that is the reason of it.
func causeOf(ctx context.Context, err error) error {
	var silent silentError
	if errors.As(context.Cause(ctx), &silent) {
		return silent
	}
	return err
}

// watchedBody is the body of a download.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context // of the request
	cancel  context.CancelCauseFunc
	silence time.Duration // that a read takes at most
}

// Read is of io.Reader.
func (b *watchedBody) Read(p []byte) (int, error) {
	watch := time.AfterFunc(b.silence, func() { b.cancel(silentError(b.silence)) })
	defer watch.Stop()
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close is of io.Closer.
func (b *watchedBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
