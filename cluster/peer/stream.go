package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/claimq/claimq/internal/bytesize"
)

// All requests of a follower that the leader may hold for a long time share one connection:
// ten thousand workers that wait through a follower need ten thousand streams of it. After
// the handshake both sides send frames, and those of different streams may be interleaved:
//
//	[kind, 1 byte][stream, uint32][length, uint32][payload]   big endian
//
//	follower                         leader
//	  q  one HTTP request      ──►
//	  c  the caller has gone   ──►
//	                           ◄──   A  a part of an HTTP answer, more follow
//	                           ◄──   a  the last part of it
//	  p                        ──►
//	                           ◄──   p
//
// The follower numbers the streams; two that are open never share a number. Each request
// gets exactly one answer, also after c, which only makes it come sooner. p shows each side
// that the other is alive: a side that hears nothing for streamSilenceMax closes the
// connection, which fails everything that waits on it.
const (
	frameRequest  = 'q'
	frameCancel   = 'c'
	framePart     = 'A'
	frameLastPart = 'a'
	framePing     = 'p'

	streamHeaderSize = 9
	// streamRequestMax bounds a request, including headers. Larger ones use a connection of
	// their own.
	streamRequestMax = 256 << 10
	// streamPartMax bounds a part of an answer, so that other streams get their turn
	// between parts.
	streamPartMax = 64 << 10
	// streamsMax bounds the requests of other nodes that wait here, over all connections.
	// Further ones are refused as overload.
	streamsMax = 32_768
	// streamWriteTimeout bounds sending one frame. A side that takes longer to read it is
	// disconnected.
	streamWriteTimeout = 5 * time.Second
	// streamPingInterval is the interval of the follower's pings.
	streamPingInterval = time.Second
	// streamSilenceMax bounds the silence of a side.
	streamSilenceMax = 6 * time.Second
	// streamIdleTimeout is the time after which a connection without streams is closed.
	streamIdleTimeout = connIdleTimeout
	// streamReadBuffer is the size of a side's read buffer.
	streamReadBuffer = 32 << 10
)

// errStreamFrame is returned for a frame that the other side must not send.
var errStreamFrame = errors.New("peer stream: unexpected frame")

// frameConn is a connection that carries frames. One goroutine reads; any number may send.
type frameConn struct {
	conn *peerConn
	r    *bufio.Reader

	// mu serializes sending frames. It is never held for long, because a large answer lets
	// small ones in between its parts.
	mu  sync.Mutex
	buf []byte // the frame being sent
	err error  // first send error; the connection is then closed
}

func newFrameConn(c *peerConn) *frameConn {
	return &frameConn{conn: c, r: bufio.NewReaderSize(c, streamReadBuffer)}
}

// send sends one frame. After an error the frame did not arrive completely and never will,
// because the connection is closed.
func (f *frameConn) send(kind byte, stream uint32, payload []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	f.buf = append(f.buf[:0], kind)
	f.buf = binary.BigEndian.AppendUint32(f.buf, stream)
	f.buf = binary.BigEndian.AppendUint32(f.buf, uint32(len(payload))) //nolint:gosec // bounded far below 4 GiB
	f.buf = append(f.buf, payload...)
	err := f.conn.SetWriteDeadline(time.Now().Add(streamWriteTimeout))
	if err == nil {
		_, err = f.conn.Write(f.buf)
	}
	if err != nil {
		f.err = fmt.Errorf("peer stream: send: %w", err)
		_ = f.conn.Close() // after half a frame the rest would be unreadable
	}
	return f.err
}

// sendAnswer sends an answer in parts.
func (f *frameConn) sendAnswer(stream uint32, answer []byte) error {
	for len(answer) > streamPartMax {
		if err := f.send(framePart, stream, answer[:streamPartMax]); err != nil {
			return err
		}
		answer = answer[streamPartMax:]
	}
	return f.send(frameLastPart, stream, answer)
}

// frame is a received frame. The receiver owns the payload.
type frame struct {
	kind    byte
	stream  uint32
	payload []byte
}

// receive returns the next frame. It fails if no complete one arrives within
// streamSilenceMax.
func (f *frameConn) receive() (frame, error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(streamSilenceMax)); err != nil {
		return frame{}, err
	}
	var header [streamHeaderSize]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return frame{}, err
	}
	got := frame{kind: header[0], stream: binary.BigEndian.Uint32(header[1:])}
	size := binary.BigEndian.Uint32(header[5:])
	if size > streamRequestMax {
		return frame{}, fmt.Errorf("%w: %q of %s is over the bound of %s", errStreamFrame, got.kind, bytesize.Text(int64(size)), bytesize.Text(streamRequestMax))
	}
	if size > 0 {
		got.payload = make([]byte, size)
		if _, err := io.ReadFull(f.r, got.payload); err != nil {
			return frame{}, err
		}
	}
	return got, nil
}
