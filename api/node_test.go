package api

import (
	"context"
	"os"
	"testing"

	"github.com/claimq/claimq/api/nodetest"
	"github.com/claimq/claimq/internal/testwait"
)

var _ Node = (*nodetest.Node)(nil)

func TestMain(m *testing.M) {
	testwait.Together(2) // some wait for timeouts of connections
	os.Exit(m.Run())
}

// setup returns a server over a fake node.
func setup(t testing.TB, options ...func(*Config)) (*Server, *nodetest.Node) {
	t.Helper()
	node := nodetest.New()
	cfg := Config{Node: node, Version: "v0.0.1", AdvertisedHosts: []string{"http://queue.example:7400"}}
	for _, o := range options {
		o(&cfg)
	}
	if os.Getenv(serversOverTLS) != "" {
		cfg.TLS, _ = sharedTLS(t)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return s, node
}
