package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// listenState is TCP_LISTEN in the kernel's tables.
const listenState = "0A"

// sockets returns the addresses on which the sockets of the process's network namespace
// listen, or to which they are bound unless they are of TCP. A process that has ended has
// none.
func sockets(t *testing.T, pid int) []netip.AddrPort {
	t.Helper()
	var all []netip.AddrPort
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
			fields := strings.Fields(line)
			if strings.HasPrefix(table, "udp") || fields[3] == listenState {
				all = append(all, parseSocket(t, fields[1]))
			}
		}
	}
	return all
}

// parseSocket parses ADDRESS:PORT in hex, with the address in words of four bytes, least
// significant byte first.
func parseSocket(t *testing.T, text string) netip.AddrPort {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	addr, ok := netip.AddrFromSlice(b)
	if !ok {
		t.Fatalf("no address: %q", text)
	}
	var number uint16
	if _, err := fmt.Sscanf(port, "%X", &number); err != nil {
		t.Fatal(err)
	}
	return netip.AddrPortFrom(addr, number)
}

// A node without configured addresses listens on the two documented ports of loopback, and
// nowhere else, according to the kernel's tables of a separate network namespace. Needs
// root.
func TestServer_listensOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args string // of claimq
		want []string
	}{
		{"server", "server --node-id n1 --data-dir data --bootstrap", []string{"127.0.0.1:7400", "127.0.0.1:7401"}},
		{"dev", "dev --data-dir data", []string{
			"127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7410", "127.0.0.1:7411", "127.0.0.1:7420", "127.0.0.1:7421",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log, err := os.Create(filepath.Join(dir, "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			cmd := exec.Command("sh", "-c", "ip link set lo up && exec "+binary()+" "+test.args)
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
			// Pdeathsig ties its life to the thread that starts it.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if err := cmd.Start(); err != nil {
				t.Fatalf("start it in a network namespace of its own, which root can: %v", err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				<-ended
			})
			ctx := deadline(t)
			var got []string
			for !slices.Equal(got, test.want) {
				got = got[:0]
				for _, addr := range sockets(t, cmd.Process.Pid) {
					if !addr.Addr().IsLoopback() {
						t.Fatalf("something listens on %s", addr)
					}
					got = append(got, addr.String())
				}
				slices.Sort(got)
				select {
				case err := <-ended:
					ended <- err
					text, _ := os.ReadFile(log.Name())
					t.Fatalf("it ended: %v; it printed:\n%s", err, text)
				case <-ctx.Done():
					text, _ := os.ReadFile(log.Name())
					t.Fatalf("it listens on %v, want %v; it printed:\n%s", got, test.want, text)
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
}

// Sockets that listen beyond loopback are found in such a table.
func TestParseSocket(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0100007F:1CE8":                         "127.0.0.1:7400",
		"00000000:1CE9":                         "0.0.0.0:7401",
		"00000000000000000000000001000000:0050": "[::1]:80",
		"0000000000000000FFFF00000100007F:0050": "[::ffff:127.0.0.1]:80",
	} {
		if got := parseSocket(t, text).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
