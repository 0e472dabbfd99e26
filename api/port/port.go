package port

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/lasting"
	"github.com/claimq/claimq/api/refuse"
)

// The bounds of a request and its answer on a connection.
const (
	// ReadTimeout bounds the arrival of one whole request. This and the next two
	// are kept to within deadlineSlack.
	ReadTimeout = 30 * time.Second
	// WriteTimeout is how long a client may take to read the next writePiece bytes
	// of an answer; all of an answer it has to read at writeRate or faster, beside
	// that.
	WriteTimeout = 10 * time.Second
	writePiece   = 64 << 10
	writeRate    = 64 << 10 // bytes per second
	// LingerTime and LingerBytes bound what is read and dropped of a body whose
	// request has its answer, so that the client, still sending, gets to see it.
	LingerTime  = 2 * time.Second
	LingerBytes = 64 << 20
)

// Config is what a port is made of. All of it is needed but TLS and ClientAuthorities.
type Config struct {
	Connections  int   // at once
	PerAddress   int   // of them strangers from one address
	BodiesBytes  int64 // of all bodies that are received, each BodyCopies times
	AnswersBytes int64 // of all answers that are not written yet

	TLS               *tls.Config           // nil: plain HTTP
	ClientAuthorities func() *x509.CertPool // of now; nil: clients need no certificate

	Logger  hclog.Logger
	Serving context.Context // ends when the server drains
	Shares  *lasting.Shares // of keys, among connections

	// Answered is told of an answer that the port gives by itself, and returns an id
	// for it.
	Answered func(f *refuse.Refusal) (id []byte)
	// StrangerEnded is told of a connection that was closed for another.
	StrangerEnded func()
	// Release releases the claims of an answer that could not be written. It does not
	// keep u.
	Release func(u *Unsent)
}

// Port is a server's public port. Its methods are safe for concurrent use.
type Port struct {
	cfg        Config
	open       atomic.Int64 // connections
	bodies     atomic.Int64 // bytes of the bodies that were read and not answered, BodyCopies times
	strangers  strangers
	handshakes handshakes // of TLS
	shown      shownConns // with certificates of clients

	acceptLogged time.Time // when a failure was; of the goroutine that accepts

	Answers Room    // the memory for answers
	Results Room    // of what answers are made of, as large; taken before it is there
	Buffers Buffers // of large answers and bodies
}

// New returns a port without connections.
func New(cfg Config) *Port {
	p := &Port{cfg: cfg}
	p.strangers.perAddress, p.Answers.most, p.Results.most = cfg.PerAddress, cfg.AnswersBytes, cfg.AnswersBytes
	return p
}

// Open returns how many connections there are.
func (p *Port) Open() int64 { return p.open.Load() }

// Strangers returns how many of them have shown no valid key.
func (p *Port) Strangers() int { return p.strangers.count() }

// BodyBytes returns how much large requests take that are not answered, with what is made of them.
func (p *Port) BodyBytes() int64 { return p.bodies.Load() }
