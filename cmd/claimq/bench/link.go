package bench

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// answerMax bounds an answer including its headers.
const answerMax = 32 << 20

// deadlineSlack is the time by which a call may exceed callTimeout, because the connection's deadline, which costs as
// much as a short system call, is moved only that often.
const deadlineSlack = time.Second

// link is a persistent connection with one call at a time. It is for one goroutine, and unusable after an error.
//
// It is not a general HTTP client: it writes requests of one form, and understands only the server's answers to them.
// The load often shares the processors with the servers, and a general client would take a third of them.
type link struct {
	addr string // host:port
	conn net.Conn
	// until is the connection's deadline.
	until time.Time

	out []byte // the request
	in  []byte // the part of the answer received so far
}

func newLink(url string) *link {
	return &link{addr: fasthttp.AddMissingPort(strings.TrimPrefix(url, "http://"), false), in: make([]byte, 0, 8<<10)}
}

// dial opens the connection.
func (l *link) dial() error {
	conn, err := net.DialTimeout("tcp", l.addr, callTimeout)
	if err != nil {
		return err
	}
	l.conn = conn
	return nil
}

func (l *link) close() {
	if l.conn != nil {
		_ = l.conn.Close() // no call is under way
	}
}

// post sends a body at now and returns the answer, which is valid until the next call. The path is given in parts.
func (l *link) post(now time.Time, body []byte, path ...[]byte) (status int, answer []byte, err error) {
	if l.conn == nil {
		if err := l.dial(); err != nil {
			return 0, nil, err
		}
	}
	if left := l.until.Sub(now); left < callTimeout {
		l.until = now.Add(callTimeout + deadlineSlack)
		if err := l.conn.SetDeadline(l.until); err != nil {
			return 0, nil, err
		}
	}
	l.out = append(l.out[:0], "POST "...)
	for _, part := range path {
		l.out = append(l.out, part...)
	}
	l.out = append(append(l.out, " HTTP/1.1\r\nHost: "...), l.addr...)
	l.out = append(l.out, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	l.out = strconv.AppendInt(l.out, int64(len(body)), 10)
	l.out = append(append(l.out, "\r\n\r\n"...), body...)
	if err := l.exchange(); err != nil {
		return 0, nil, err
	}
	return parseAnswer(l.in)
}

// exchange sends out and reads until in is a whole answer.
func (l *link) exchange() error {
	if _, err := l.conn.Write(l.out); err != nil {
		return err
	}
	for l.in = l.in[:0]; !whole(l.in); {
		if len(l.in) == cap(l.in) {
			l.in = append(l.in, 0)[:len(l.in)]
		}
		n, err := l.conn.Read(l.in[len(l.in):cap(l.in)])
		l.in = l.in[:len(l.in)+n]
		if err != nil {
			return err
		}
		if len(l.in) > answerMax {
			return fmt.Errorf("the answer is longer than %d bytes", answerMax)
		}
	}
	return nil
}

var (
	headEnd    = []byte("\r\n\r\n")
	statusHead = []byte("HTTP/1.1 ")
	lengthName = []byte("\r\nContent-Length: ")
)

// whole reports whether b is a whole answer, or certainly not an answer.
func whole(b []byte) bool {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return false
	}
	length, ok := contentLength(b[:end])
	return !ok || len(b) >= end+len(headEnd)+length
}

func contentLength(head []byte) (int, bool) {
	_, text, ok := bytes.Cut(head, lengthName)
	if !ok {
		return 0, false
	}
	length, digits := number(text)
	return int(length), digits > 0 && length <= answerMax
}

// parseAnswer parses a whole answer.
func parseAnswer(b []byte) (status int, body []byte, err error) {
	head, body, _ := bytes.Cut(b, headEnd)
	text, ok := bytes.CutPrefix(head, statusHead)
	code, digits := number(text)
	length, sized := contentLength(head)
	if !ok || digits != 3 || !sized || len(body) != length {
		return 0, nil, fmt.Errorf("not an answer of claimq: %q", b[:min(len(b), 200)])
	}
	return int(code), body, nil
}

// number parses the digits at the beginning of b.
func number(b []byte) (n uint64, digits int) {
	for digits < len(b) && digits < 19 && b[digits] >= '0' && b[digits] <= '9' {
		n = n*10 + uint64(b[digits]-'0')
		digits++
	}
	return n, digits
}
