package door

import (
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// newPort returns a port without a listener.
func newPort(t *testing.T) *Port {
	t.Helper()
	keys := &atomic.Pointer[Keyring]{}
	return New(Config{
		Connections: 10, PerAddress: 10, BodiesBytes: 1 << 20, AnswersBytes: 1 << 20,
		Logger: hclog.NewNullLogger(), Serving: t.Context(), Shares: &Shares{Keys: keys},
		StrangerEnded: func() {},
	})
}
