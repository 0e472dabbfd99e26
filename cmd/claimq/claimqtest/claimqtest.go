// Package claimqtest is what the tests of claimq's rooms share: ports, and how long to
// wait. Only tests import it.
package claimqtest

import (
	"net"
	"testing"
	"time"

	"github.com/claimq/claimq/jepsen/procs"
)

// Patience bounds every wait for a process.
const Patience = time.Minute

// TakePorts returns ports that nobody else is given until the test ends.
func TakePorts(t *testing.T, count int) []int {
	t.Helper()
	ports, release, err := procs.TakePorts(count)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return ports
}

// NextNotice returns what a server tells the service manager next.
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
