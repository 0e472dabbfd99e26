package port

import (
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/lasting"
)

// newPort returns a port without a listener.
func newPort(t *testing.T) *Port {
	t.Helper()
	keys := &atomic.Pointer[keyring.Ring]{}
	return New(Config{
		Connections: 10, PerAddress: 10, BodiesBytes: 1 << 20, AnswersBytes: 1 << 20,
		Logger: hclog.NewNullLogger(), Serving: t.Context(), Shares: &lasting.Shares{Keys: keys},
		StrangerEnded: func() {}, Release: func(*Unsent) {},
	})
}
