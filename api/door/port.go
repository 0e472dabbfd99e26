package door

import (
	"context"
	"crypto/tls"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/refuse"
)

// Bounds of a request and its answer on a connection.
const (
	// ReadTimeout bounds the arrival of a whole request. This and the next two are precise to deadlineSlack.
	ReadTimeout = 30 * time.Second
	// WriteTimeout bounds how long a client may take to read the next writePiece bytes of an answer. In addition it
	// must read the whole answer at writeRate or faster.
	WriteTimeout = 10 * time.Second
	writePiece   = 64 << 10
	writeRate    = 64 << 10 // bytes per second
	// LingerTime and LingerBytes bound what is read and discarded of a body whose request has been answered, so that
	// a client that is still sending gets the answer.
	LingerTime  = 2 * time.Second
	LingerBytes = 64 << 20
)

// Config configures a port. Only TLS is optional.
type Config struct {
	Connections  int   // at once
	PerAddress   int   // strangers from one address
	BodiesBytes  int64 // total size of bodies being received, each counted BodyCopies times
	AnswersBytes int64 // total size of answers not yet written

	TLS     *tls.Config   // nil: plain HTTP
	ConnAge time.Duration // of a client with a certificate
	// HandshakeTimeout bounds a TLS handshake, counted from when the connection was opened. A client that is silent is
	// cut off then.
	HandshakeTimeout time.Duration

	Logger  hclog.Logger
	Serving context.Context // ends when the server drains
	Shares  *Shares         // counts connections per key, among others

	// Answered is called for an answer that the port gives itself, and returns an id for it.
	Answered func(f *refuse.Refusal) (id []byte)
	// StrangerEnded is called for a connection that was closed to make room.
	StrangerEnded func()
}

// Port is a server's public port. Its methods are safe for concurrent use.
type Port struct {
	cfg  Config
	open atomic.Int64 // connections
	// slots bounds the connections that the HTTP server still has, also those that were closed to make room.
	slots      chan struct{}
	bodies     atomic.Int64 // bytes of bodies that were read and not answered, BodyCopies times
	strangers  strangers
	handshakes handshakes // of TLS

	acceptLogged time.Time // time of the last logged failure; only for the accepting goroutine

	Answers Budget  // of the memory for answers
	Results Budget  // of the memory for the results that answers are made from, of the same size
	Buffers Buffers // of large answers and bodies
}

// ServedMost returns how many connections the HTTP server of a port may have at a time: those that are open, and as
// many again that were closed to make room and whose goroutines have not noticed yet.
func ServedMost(connections int) int { return 2 * connections }

// New returns a port without connections.
func New(cfg Config) *Port {
	p := &Port{cfg: cfg, slots: make(chan struct{}, ServedMost(cfg.Connections))}
	p.strangers.perAddress, p.Answers.most, p.Results.most = cfg.PerAddress, cfg.AnswersBytes, cfg.AnswersBytes
	return p
}

// Open returns the number of open connections.
func (p *Port) Open() int64 { return p.open.Load() }

// Strangers returns the number of connections that have shown no valid key.
func (p *Port) Strangers() int { return p.strangers.count() }

// BodyBytes returns the counted size of large requests that are not answered yet.
func (p *Port) BodyBytes() int64 { return p.bodies.Load() }
