package hosts

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// loopback starts proxies in front of one echo, node 2, which takes this
// process for node 1.
func loopback(t *testing.T) (p *Proxies, connect func() net.Conn) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); io.Copy(conn, conn) }()
		}
	}()
	p = NewProxies(1)
	t.Cleanup(func() { p.Close() })
	p.SetPIDs(func() map[int]int { return map[int]int{os.Getpid(): 1} })
	addr, err := p.Listen(2, server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p, func() net.Conn {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

func TestProxies_Cut(t *testing.T) {
	t.Parallel()
	p, connect := loopback(t)
	old := connect()
	if err := ask(old, patience); err != nil {
		t.Fatal(err)
	}
	for _, link := range []Link{{1, 2}, {2, 1}} {
		remove := shape(t, p, map[Link]Quality{link: {Cut: true}})
		fresh := connect()
		for name, conn := range map[string]net.Conn{"old": old, "new": fresh} {
			if err := ask(conn, quietTime); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s connection with link %v cut: %v, want a deadline exceeded", name, link, err)
			}
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		for name, conn := range map[string]net.Conn{"old": old, "new": fresh} {
			if err := answer(conn); err != nil {
				t.Errorf("%s connection after the cut of %v: %v", name, link, err)
			}
		}
	}
}

// A link of other nodes does not matter.
func TestProxies_otherLink(t *testing.T) {
	t.Parallel()
	p, connect := loopback(t)
	shape(t, p, map[Link]Quality{{3, 2}: {Cut: true}, {2, 3}: {Cut: true}})
	if err := ask(connect(), patience); err != nil {
		t.Error(err)
	}
}

func TestProxies_Delay(t *testing.T) {
	t.Parallel()
	p, connect := loopback(t)
	conn := connect()
	const delay = 150 * time.Millisecond
	shape(t, p, map[Link]Quality{{1, 2}: {Delay: delay}, {2, 1}: {Delay: delay, Jitter: delay}})
	began := time.Now()
	if err := ask(conn, patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back in %v, want %v at least", took, 2*delay)
	}
}

func TestProxies_unsupported(t *testing.T) {
	t.Parallel()
	p, _ := loopback(t)
	for _, q := range []Quality{{Loss: 0.1}, {Duplicate: 0.1}, {Reorder: 0.1}} {
		if _, err := p.Shape(map[Link]Quality{{1, 2}: q}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%+v: %v, want ErrUnsupported", q, err)
		}
	}
}

// What one end closes, the other end sees closed, after all that was sent.
func TestProxies_end(t *testing.T) {
	t.Parallel()
	_, connect := loopback(t)
	conn := connect()
	conn.SetDeadline(time.Now().Add(patience))
	go func() {
		fmt.Fprint(conn, strings.Repeat("x", 1<<20))
		conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes came back (%v), want all and the end", len(got), err)
	}
}

func TestNodeOf(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command("bash", "-c", fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d; cat <&3", l.Addr().(*net.TCPAddr).Port))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if node, ok := nodeOf(conn, map[int]int{os.Getpid(): 1, cmd.Process.Pid: 2}); !ok || node != 2 {
		t.Errorf("node %d, %v; want 2", node, ok)
	}
	if node, ok := nodeOf(conn, map[int]int{os.Getpid(): 1}); ok {
		t.Errorf("node %d, of a process that is none", node)
	}
}
