// Package claimqtest has helpers for the tests of claimq's packages: ports and a timeout.
package claimqtest

import (
	"net"
	"testing"
	"time"

	"github.com/claimq/claimq/internal/procs"
)

// Patience bounds every wait for a process.
const Patience = time.Minute

// TakePorts returns ports that no other test gets before this test ends.
func TakePorts(t *testing.T, count int) []int {
	t.Helper()
	ports, release, err := procs.TakePorts(count)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return ports
}

// NextNotice returns the next message from a server to the service manager.
func NextNotice(t *testing.T, manager *net.UnixConn) string {
	t.Helper()
	if err := manager.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	state := make([]byte, 4096)
	n, err := manager.Read(state)
	if err != nil {
		t.Fatalf("no notice: %v", err)
	}
	return string(state[:n])
}
