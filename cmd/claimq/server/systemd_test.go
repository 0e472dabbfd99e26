package server

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/cmd/claimq/claimqtest"
	"github.com/claimq/claimq/cmd/claimq/term"
)

// noticesTo returns notices and the socket of the manager that gets them.
func noticesTo(t *testing.T) (*notices, *net.UnixConn) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	n := newNotices(&term.App{Environ: []string{"NOTIFY_SOCKET=" + socket}}, hclog.NewNullLogger())
	t.Cleanup(func() {
		n.stop()
		_ = manager.Close()
	})
	return n, manager
}

// A node that finds no other node counts as started after a while. Otherwise starting several nodes one after another
// would wait forever.
func TestNotices_Late(t *testing.T) {
	t.Parallel()
	n, manager := noticesTo(t)
	n.reloading(func() {}) // not reported yet, because it would count as started
	n.late.Reset(0)
	if got := claimqtest.NextNotice(t, manager); !strings.HasPrefix(got, "READY=1\nSTATUS=not ready yet") {
		t.Errorf("first it told %q", got)
	}
	n.await(func() error { return nil })
	if got := claimqtest.NextNotice(t, manager); got != "STATUS=ready" {
		t.Errorf("then it told %q", got)
	}
}

// A node that was ready in time is not called late later.
func TestNotices_inTime(t *testing.T) {
	t.Parallel()
	n, manager := noticesTo(t)
	n.await(func() error { return nil })
	if got := claimqtest.NextNotice(t, manager); got != "READY=1\nSTATUS=ready" {
		t.Errorf("first it told %q", got)
	}
	n.started("not ready yet", false) // as the timer does
	n.reloading(func() {})
	if got := claimqtest.NextNotice(t, manager); got != "RELOADING=1" {
		t.Errorf("then it told %q", got)
	}
}
