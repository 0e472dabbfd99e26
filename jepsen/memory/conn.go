package memory

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/jepsen/sqs"
)

const (
	// kernelBytes is the size of the system's receive buffer for an answer. It is small, so that
	// unread answers stay in the node's memory.
	kernelBytes = 8 << 10
	// Answers are read in pieces of pieceBytes with pauses of piecePause: fast enough not to be cut
	// off, and slow enough that large answers last until the end.
	pieceBytes, piecePause = 16 << 10, 100 * time.Millisecond
	// againPause is the pause between two requests of a connection.
	againPause = 100 * time.Millisecond
)

// errBroken is returned for a connection that the node has closed: so it refuses some requests.
var errBroken = errors.New("the connection was closed")

// asker is one connection, which asks again and again.
type asker struct {
	addr, key string
	conn      net.Conn
	answers   *bufio.Reader
}

// ask makes one request and reads the answer slowly, until ctx ends. It returns the status as
// soon as that has come, to told; 0 if none has. op is the call of a client of SQS, whose tries
// all have one id; "": the call is the API's own.
func (a *asker) ask(ctx context.Context, method, target, op, body string, told func(status int)) error {
	if a.conn == nil {
		if err := a.connect(ctx); err != nil {
			return err
		}
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n", method, target)
	if op == "" {
		head += "X-API-Key: " + a.key + "\r\n"
	} else {
		head += sqs.Headers("localhost", []byte(body)) + "X-Amz-Target: AmazonSQS." + op + "\r\nAmz-Sdk-Invocation-Id: " + op + "\r\n"
	}
	if body != "" {
		head += "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	if target == eventStream {
		head += "Accept: text/event-stream\r\n"
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+target, nil)
	if err != nil {
		return err
	}
	// What the node refuses before it has read all is answered all the same.
	_, writeErr := io.WriteString(a.conn, head+"\r\n")
	if writeErr == nil {
		_, writeErr = io.WriteString(a.conn, body) // which all share
	}
	answer, err := http.ReadResponse(a.answers, request)
	if err != nil {
		a.close()
		return fmt.Errorf("%w: %w, %w", errBroken, writeErr, err)
	}
	told(answer.StatusCode)
	piece := make([]byte, pieceBytes)
	for pause.For(ctx, 0) {
		if _, err = io.ReadFull(answer.Body, piece); err != nil {
			break
		}
		pause.For(ctx, piecePause)
	}
	if answer.Close || writeErr != nil || !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		a.close()
	}
	return nil
}

func (a *asker) connect(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", a.addr)
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetReadBuffer(kernelBytes); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	a.conn, a.answers = conn, bufio.NewReader(conn)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return nil
}

func (a *asker) close() {
	if a.conn != nil {
		_ = a.conn.Close()
		a.conn = nil
	}
}
