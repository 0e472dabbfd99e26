package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/nodes"
)

// All client requests that a follower passes on to the leader share one connection: ten thousand
// workers that wait through a follower need ten thousand streams of it. After the handshake both
// sides send frames, and those of different streams may be interleaved:
//
//	[kind, 1 byte][stream, uint32][length, uint32][payload]   big endian
//
//	follower                                    leader
//	  Q  a part of a request, more follow ──►
//	  q  the last part of it              ──►
//	                                      ◄──   w  the leader may hold it that long [ms, uint32]
//	  c  its answer is no longer wanted   ──►
//	                                      ◄──   A  a part of an answer, more follow
//	  m  send the parts after the first   ──►
//	                                      ◄──   a  the last part of it
//	  d  the answer reached the client    ──►      only if the answer asks for it
//	  u  it did not                       ──►
//	  p                                   ──►
//	                                      ◄──   p
//
// A request begins with what the follower says of it, and the client's request follows. An answer
// begins with what the leader says of it, and the answer for the client follows, unless the request
// was given up:
//
//	request:  [flags, 1 byte][waited ms, uint32][client's address, 16 bytes][HTTP]
//	answer:   [flags, 1 byte][HTTP]
//
// The follower numbers the streams; two that are open never share a number. Each request gets
// exactly one answer, also after c, which only makes it come sooner. An answer of several parts
// waits for m after the first, so that the follower keeps no more than it has room for. p shows
// each side that the other is alive: a side that hears nothing for streamSilenceMax closes the
// connection, which fails everything that waits on it.
const (
	frameRequestPart = 'Q'
	frameRequest     = 'q'
	frameHeld        = 'w'
	frameCancel      = 'c'
	framePart        = 'A'
	frameMore        = 'm'
	frameLastPart    = 'a'
	frameDelivered   = 'd'
	frameUndelivered = 'u'
	framePing        = 'p'

	streamHeaderSize = 9
	// streamPartMax bounds a part, so that other streams get their turn between parts.
	streamPartMax = 64 << 10
	// streamRequestMax bounds a request with its headers.
	streamRequestMax = forwardBodyMax + forwardHeaderMax
	// streamsAtOnce bounds the requests of a follower that are under way and not held, so that the
	// leader has the memory for them. Further ones wait for their turn.
	streamsAtOnce = 512
	// streamsMax bounds the requests of other nodes that are answered here, over all
	// connections. Further ones are refused as overload.
	streamsMax = 32_768
	// streamWriteTimeout bounds sending one frame, give or take streamDeadlineSlack. A side that
	// takes longer to read it is disconnected.
	streamWriteTimeout = 5 * time.Second
	// streamDeadlineSlack is the time for which a deadline of the connection is not changed, because
	// setting one for each frame costs as much as a small frame.
	streamDeadlineSlack = 500 * time.Millisecond
	// streamMoreTimeout bounds the wait for m.
	streamMoreTimeout = 30 * time.Second
	// streamPingInterval is the interval of the follower's pings.
	streamPingInterval = time.Second
	// streamSilenceMax bounds the silence of a side, give or take streamDeadlineSlack.
	streamSilenceMax = 6 * time.Second
	// streamIdleTimeout is the time after which a connection without streams is closed.
	streamIdleTimeout = connIdleTimeout
	// streamReadBuffer is the size of a side's read buffer.
	streamReadBuffer = 32 << 10

	flagKnown = 1 // of a request: nodes.Passing.Known

	flagGivenUp   = 1 // of an answer: nodes.Passed.GivenUp
	flagOpRefused = 2 // nodes.Passed.OpRefused
	flagTell      = 4 // the leader wants d or u

	passingSize = 1 + 4 + 16
)

// errStreamFrame is returned for a frame that the other side must not send.
var errStreamFrame = errors.New("peer stream: unexpected frame")

// frameConn is a connection that carries frames. One goroutine reads; any number may send.
type frameConn struct {
	conn   *peerConn
	r      *bufio.Reader
	readBy time.Time // the read deadline

	// mu serializes sending frames. It is never held for long, because large messages let small
	// ones in between their parts.
	mu      sync.Mutex
	writeBy time.Time // the write deadline
	err     error     // first send error; the connection is then closed
}

func newFrameConn(c *peerConn) *frameConn {
	return &frameConn{conn: c, r: bufio.NewReaderSize(c, streamReadBuffer)}
}

// newMessage returns a buffer for a message: room for the header of its first frame.
func newMessage(b []byte) []byte { return append(b[:0], make([]byte, streamHeaderSize)...) }

// send sends one frame with that payload. After an error the frame did not arrive completely and
// never will, because the connection is closed.
func (f *frameConn) send(kind byte, stream uint32, payload ...byte) error {
	return f.sendMessage(kind, stream, append(make([]byte, streamHeaderSize, 64), payload...))
}

// sendMessage sends the frame whose payload is behind room for its header.
func (f *frameConn) sendMessage(kind byte, stream uint32, message []byte) error {
	message[0] = kind
	binary.BigEndian.PutUint32(message[1:], stream)
	binary.BigEndian.PutUint32(message[5:], uint32(len(message)-streamHeaderSize)) //nolint:gosec // bounded far below 4 GiB
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	now, err := time.Now(), error(nil)
	if by := now.Add(streamWriteTimeout); by.Sub(f.writeBy) > streamDeadlineSlack {
		f.writeBy, err = by, f.conn.SetWriteDeadline(by)
	}
	if err == nil {
		_, err = f.conn.Write(message)
	}
	if err != nil {
		f.err = fmt.Errorf("peer stream: send: %w", err)
		_ = f.conn.Close() // after half a frame the rest would be unreadable
	}
	return f.err
}

// sendParts sends a message, which begins with room for a header, in parts. goOn, if not nil, is
// called after the first one, unless that is all; its error ends the sending.
func (f *frameConn) sendParts(part, last byte, stream uint32, message []byte, goOn func() error) error {
	for len(message) > streamHeaderSize+streamPartMax {
		// The header of the next part goes where the end of this one was.
		if err := f.sendMessage(part, stream, message[:streamHeaderSize+streamPartMax]); err != nil {
			return err
		}
		message = message[streamPartMax:]
		if goOn != nil {
			if err := goOn(); err != nil {
				return err
			}
			goOn = nil
		}
	}
	return f.sendMessage(last, stream, message)
}

// frame is a received frame. The receiver owns the payload.
type frame struct {
	kind    byte
	stream  uint32
	payload []byte
}

// receive returns the next frame. It fails if no complete one arrives within streamSilenceMax.
func (f *frameConn) receive() (frame, error) {
	if by := time.Now().Add(streamSilenceMax); by.Sub(f.readBy) > streamDeadlineSlack {
		f.readBy = by
		if err := f.conn.SetReadDeadline(by); err != nil {
			return frame{}, err
		}
	}
	var header [streamHeaderSize]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return frame{}, err
	}
	got := frame{kind: header[0], stream: binary.BigEndian.Uint32(header[1:])}
	size := binary.BigEndian.Uint32(header[5:])
	if size > streamPartMax {
		return frame{}, fmt.Errorf("%w: %q of %s is over the bound of %s", errStreamFrame, got.kind, bytesize.Text(int64(size)), bytesize.Text(streamPartMax))
	}
	if size > 0 {
		got.payload = make([]byte, size)
		if _, err := io.ReadFull(f.r, got.payload); err != nil {
			return frame{}, err
		}
	}
	return got, nil
}

// appendPassing appends what a follower says of a request.
func appendPassing(b []byte, pass *nodes.Passing) []byte {
	flags := byte(0)
	if pass.Known {
		flags = flagKnown
	}
	b = binary.BigEndian.AppendUint32(append(b, flags), uint32(min(max(pass.Waited.Milliseconds(), 0), 1<<32-1))) //nolint:gosec // bounded here
	var from [16]byte
	if pass.From.IsValid() {
		from = pass.From.As16()
	}
	return append(b, from[:]...)
}

// parsePassing is the reverse of appendPassing. It returns the client's request, too.
func parsePassing(message []byte) (pass nodes.Passing, request []byte, err error) {
	if len(message) < passingSize {
		return pass, nil, errStreamFrame
	}
	pass.Known = message[0]&flagKnown != 0
	pass.Waited = time.Duration(binary.BigEndian.Uint32(message[1:])) * time.Millisecond
	if from := [16]byte(message[5:passingSize]); from != [16]byte{} {
		pass.From = netip.AddrFrom16(from).Unmap()
	}
	return pass, message[passingSize:], nil
}

// appendRequest appends a client's request unchanged, in HTTP format, without what
// concerns only its connection.
func appendRequest(b []byte, req *fasthttp.Request) []byte {
	b = append(append(b, req.Header.Method()...), ' ')
	b = append(append(b, req.Header.RequestURI()...), " HTTP/1.1\r\n"...)
	for name, value := range req.Header.All() {
		switch string(name) {
		case fasthttp.HeaderConnection, fasthttp.HeaderContentLength, fasthttp.HeaderTransferEncoding, fasthttp.HeaderExpect, fasthttp.HeaderTrailer, fasthttp.HeaderUpgrade:
			continue
		}
		b = appendHeader(b, name, value)
	}
	return appendBody(b, req.Body())
}

// appendAnswer appends an answer in HTTP format.
func appendAnswer(b []byte, resp *fasthttp.Response) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(resp.StatusCode()), 10)
	b = append(b, " -\r\n"...)
	for name, value := range resp.Header.All() {
		switch string(name) {
		case fasthttp.HeaderConnection, fasthttp.HeaderContentLength, fasthttp.HeaderDate, fasthttp.HeaderServer, fasthttp.HeaderTransferEncoding:
			continue // hop by hop
		}
		b = appendHeader(b, name, value)
	}
	return appendBody(b, resp.Body())
}

func appendHeader(b, name, value []byte) []byte {
	return append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
}

func appendBody(b, body []byte) []byte {
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}
