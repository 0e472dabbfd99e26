// Package peertest provides what tests of communicating nodes need: nodes by name, each
// with a fixed key and identity, and connections in memory. It does not depend on the peer
// port, so that the port's own tests can use it, too.
package peertest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/cluster/nodekey"
	"github.com/claimq/claimq/internal/certs/certstest"
)

// JoinKey returns the join key that nodes share.
func JoinKey() []byte { return []byte("a join key of at least 32 characters") }

// Signer returns the key of the node of that name.
func Signer(nodeID string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(nodeID))
	return ed25519.NewKeyFromSeed(seed[:])
}

// UUID returns the identity of the node of that name.
func UUID(nodeID string) string { return nodekey.UUID(nodekey.Public(Signer(nodeID))) }

// Certificate returns a provider of a node's certificate and the authority to trust.
func Certificate(t *testing.T, trusted *certstest.Authority, c certstest.Certificate) func() (tls.Certificate, *x509.CertPool) {
	t.Helper()
	own, pool := c.TLS(t), trusted.Pool()
	return func() (tls.Certificate, *x509.CertPool) { return own, pool }
}

// Submit returns an API request to forward, and room for its answer.
func Submit(body string) (*fasthttp.Request, *fasthttp.Response) {
	var req fasthttp.Request
	var resp fasthttp.Response
	req.Header.SetMethod(fasthttp.MethodPost)
	req.Header.SetHost("n1.example")
	req.SetRequestURI("/api/tasks")
	req.SetBodyString(body)
	return &req, &resp
}
