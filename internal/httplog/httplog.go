// Package httplog logs fasthttp's messages about single connections without anything that
// the other side sent. fasthttp's errors quote what they could not read, which may contain
// an API key: in a broken header, in the request line, in a request for another program.
// Its own setting for that, SecureErrorLogMessage, leaves out the whole head but still
// quotes the part that is wrong.
package httplog

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"
)

// Logger is a fasthttp.Logger that writes to Log with Message at debug level, because the
// end of a connection is nothing unusual.
type Logger struct {
	Log     hclog.Logger
	Message string
}

// Printf logs the remark, keeping only those args that a client cannot have chosen.
func (l Logger) Printf(format string, args ...any) {
	if !l.Log.IsDebug() {
		return
	}
	known := make([]any, len(args))
	for i, arg := range args {
		known[i] = plain(arg)
	}
	l.Log.Debug(l.Message, "remark", fmt.Sprintf(format, known...))
}

// plain returns arg, or a replacement that is safe to log.
func plain(arg any) any {
	switch arg := arg.(type) {
	case error:
		return kindOf(arg)
	case net.Addr, bool, int, int64, uint64, time.Duration:
		return arg
	}
	return "..."
}

// kindOf describes the kind of an error.
func kindOf(err error) string {
	var network *net.OpError
	var timeout net.Error
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &network):
		return network.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it took too long"
	case errors.As(err, &small):
		return "the head of the request is too large"
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		return "the body is too large"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection has ended"
	}
	return "what came is not in order; it is not told, as there may be a key in it"
}
