package httplog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/valyala/fasthttp"
)

// fasthttp's messages are logged without anything that the other side sent, no matter where
// it is in them.
func TestLogger(t *testing.T) {
	t.Parallel()
	const key = "claimq_secret"
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7400}
	for want, args := range map[string][]any{
		"remark=\"error when serving connection \\\"127.0.0.1:7400\\\": what came is not in order": {"error when serving connection %q: %v", addr, fmt.Errorf("invalid header key %q", key)},
		"read tcp 127.0.0.1:7400: i/o timeout":                                                     {"%v", fmt.Errorf("%s: %w", key, &net.OpError{Op: "read", Net: "tcp", Addr: addr, Err: os.ErrDeadlineExceeded})},
		"it took too long":                                                                         {"%v", fmt.Errorf("%s: %w", key, os.ErrDeadlineExceeded)},
		"the head of the request is too large":                                                     {"%v", fmt.Errorf("%s: %w", key, &fasthttp.ErrSmallBuffer{})},
		"the body is too large":                                                                    {"%v", fmt.Errorf("%s: %w", key, fasthttp.ErrBodyTooLarge)},
		"the connection has ended":                                                                 {"%v", fmt.Errorf("%s: %w", key, io.ErrUnexpectedEOF)},
		"16384 ... ...":                                                                            {"%d %s %v", 16384, key, []byte(key)},
	} {
		var log bytes.Buffer
		l := Logger{Log: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug}), Message: "http connection"}
		l.Printf(args[0].(string), args[1:]...)
		if text := log.String(); !strings.Contains(text, want) || strings.Contains(text, key) {
			t.Errorf("%q: %q, want %q", args, text, want)
		}
	}
	var log bytes.Buffer
	Logger{Log: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})}.Printf("%v", errors.New("x"))
	if log.Len() > 0 {
		t.Errorf("at info: %s", log.String())
	}
}
