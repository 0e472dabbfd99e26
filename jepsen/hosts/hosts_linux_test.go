package hosts

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds what must happen; quietTime is the time in which nothing may happen.
const (
	patience  = 20 * time.Second
	quietTime = time.Second
)

// newHosts makes hosts for a test.
func newHosts(t *testing.T, nodes int) *Hosts {
	t.Helper()
	needRoot(t)
	h, err := New(nodes, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
}

// echo serves connections on the host's port 7, until the test ends.
func echo(t *testing.T, host *Host) {
	t.Helper()
	var l net.Listener
	err := host.ns.visit(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(host.Addr(), "7"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); io.Copy(conn, conn) }()
		}
	}()
}

// connect connects to the echo of the host.
func connect(t *testing.T, from, to *Host) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", net.JoinHostPort(to.Addr(), "7"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a line and reads its echo.
func ask(conn net.Conn, within time.Duration) error {
	conn.SetDeadline(time.Now().Add(within))
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && line != "hello\n" {
		return fmt.Errorf("echo %q", line)
	}
	return err
}

// answer reads one more echo.
func answer(conn net.Conn) error {
	conn.SetDeadline(time.Now().Add(patience))
	_, err := io.ReadFull(conn, make([]byte, len("hello\n")))
	return err
}

// shape shapes links until the test ends.
func shape(t *testing.T, n *Hosts, links map[Link]Quality) (remove func() error) {
	t.Helper()
	remove, err := n.Shape(links)
	if err != nil {
		t.Fatal(err)
	}
	return remove
}

// udp opens a UDP socket on the host.
func udp(t *testing.T, host *Host) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := host.ns.visit(func() (err error) {
		conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(host.Addr()), Port: 9})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadBuffer(4 << 20)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// flood sends count numbered packets and returns the numbers that arrive, until none does
// for a while.
func flood(t *testing.T, from, to *net.UDPConn, count int) []uint64 {
	t.Helper()
	go func() {
		for i := range count {
			from.WriteTo(binary.BigEndian.AppendUint64(nil, uint64(i)), to.LocalAddr())
		}
	}()
	var got []uint64
	for buf := make([]byte, 8); ; {
		to.SetReadDeadline(time.Now().Add(quietTime))
		if _, err := io.ReadFull(to, buf); err != nil {
			return got
		}
		got = append(got, binary.BigEndian.Uint64(buf))
	}
}

func TestHosts_Dial(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 3)
	echo(t, h.Host(2))
	for _, from := range []int{1, 2, 3, Clients} {
		if err := ask(connect(t, h.Host(from), h.Host(2)), patience); err != nil {
			t.Errorf("from host %d: %v", from, err)
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range addrs {
		if strings.HasPrefix(addr.String(), "10.99.") {
			t.Errorf("the hosts' address %v is seen outside", addr)
		}
	}
}

func TestHosts_Cut(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 3)
	echo(t, h.Host(2))
	old := connect(t, h.Host(1), h.Host(2))
	if err := ask(old, patience); err != nil {
		t.Fatal(err)
	}
	remove := shape(t, h, map[Link]Quality{{1, 2}: {Cut: true}, {2, 1}: {Cut: true}})

	// A connection stalls, a new one cannot be opened, others are not affected.
	if err := ask(old, quietTime); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("over a cut link: %v, want a deadline exceeded", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), quietTime)
	defer cancel()
	if conn, err := h.Host(1).Dial(ctx, "tcp", net.JoinHostPort(h.Host(2).Addr(), "7")); err == nil {
		conn.Close()
		t.Error("connected over a cut link")
	}
	if err := ask(connect(t, h.Host(3), h.Host(2)), patience); err != nil {
		t.Errorf("over another link: %v", err)
	}

	// TCP repeats the lost packets.
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if err := answer(old); err != nil {
		t.Errorf("after the cut: %v", err)
	}
	if err := remove(); err != nil {
		t.Errorf("removed again: %v", err)
	}
}

func TestHosts_CutOneWay(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	a, b := udp(t, h.Host(1)), udp(t, h.Host(2))
	shape(t, h, map[Link]Quality{{1, 2}: {Cut: true}})
	if got := flood(t, a, b, 10); len(got) != 0 {
		t.Errorf("%d packets went over a cut link", len(got))
	}
	if got := flood(t, b, a, 10); len(got) != 10 {
		t.Errorf("%d of 10 packets came back", len(got))
	}
}

// Two faults on one link: it works when both are over.
func TestHosts_CutTwice(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	a, b := udp(t, h.Host(1)), udp(t, h.Host(2))
	first := shape(t, h, map[Link]Quality{{1, 2}: {Cut: true}})
	second := shape(t, h, map[Link]Quality{{1, 2}: {Cut: true}})
	for i, remove := range []func() error{first, second} {
		if got := flood(t, a, b, 10); len(got) != 0 {
			t.Errorf("cut %d: %d packets went over the link", i, len(got))
		}
		if err := remove(); err != nil {
			t.Fatal(err)
		}
	}
	if got := flood(t, a, b, 10); len(got) != 10 {
		t.Errorf("after the cuts: %d of 10 packets arrived", len(got))
	}
}

func TestHosts_Loss(t *testing.T) {
	t.Parallel()
	const count = 2000
	for name, q := range map[string]Quality{
		"alone":      {Loss: 0.3},
		"with delay": {Loss: 0.3, Delay: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosts(t, 2)
			a, b := udp(t, h.Host(1)), udp(t, h.Host(2))
			shape(t, h, map[Link]Quality{{1, 2}: q})
			if got := len(flood(t, a, b, count)); got < count/3 || got > count*9/10 {
				t.Errorf("%d of %d packets arrived, want about %d", got, count, count*7/10)
			}
		})
	}
}

// An open connection works, with and without a delay.
func TestHosts_Delay(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	echo(t, h.Host(2))
	conn := connect(t, h.Host(1), h.Host(2))
	if err := ask(conn, patience); err != nil {
		t.Fatal(err)
	}
	const delay = 150 * time.Millisecond
	remove := shape(t, h, map[Link]Quality{{1, 2}: {Delay: delay}, {2, 1}: {Delay: delay}})
	began := time.Now()
	if err := ask(conn, patience); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back in %v, want %v at least", took, 2*delay)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if err := ask(conn, patience); err != nil {
		t.Errorf("after the delay: %v", err)
	}
}

func TestHosts_CutLate(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	a, b := udp(t, h.Host(1)), udp(t, h.Host(2))
	shape(t, h, map[Link]Quality{{1, 2}: {Delay: time.Millisecond}})
	remove := shape(t, h, map[Link]Quality{{1, 2}: {Cut: true}})
	if got := flood(t, a, b, 10); len(got) != 0 {
		t.Errorf("%d packets went over a cut link", len(got))
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if got := flood(t, a, b, 10); len(got) != 10 {
		t.Errorf("after the cut: %d of 10 packets arrived", len(got))
	}
}

func TestHosts_DuplicateAndReorder(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	a, b := udp(t, h.Host(1)), udp(t, h.Host(2))

	remove := shape(t, h, map[Link]Quality{{1, 2}: {Duplicate: 1}})
	if got := flood(t, a, b, 100); len(got) != 200 {
		t.Errorf("%d packets arrived, want each of 100 twice", len(got))
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}

	shape(t, h, map[Link]Quality{{1, 2}: {Reorder: 0.2}})
	got, overtaken := flood(t, a, b, 100), 0
	for i := 1; i < len(got); i++ {
		if got[i] < got[i-1] {
			overtaken++
		}
	}
	if len(got) != 100 || overtaken == 0 {
		t.Errorf("%d of 100 packets arrived, %d out of order", len(got), overtaken)
	}
}

// Jitter alone does not change the order.
func TestHosts_Jitter(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	a, b := udp(t, h.Host(1)), udp(t, h.Host(2))
	shape(t, h, map[Link]Quality{{1, 2}: {Jitter: 50 * time.Millisecond}})
	got := flood(t, a, b, 100)
	if len(got) != 100 {
		t.Fatalf("%d of 100 packets arrived", len(got))
	}
	for i := range got {
		if got[i] != uint64(i) {
			t.Fatalf("packet %d arrived as number %d", got[i], i)
		}
	}
}

func TestHosts_Limit(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	echo(t, h.Host(2))
	conn := connect(t, h.Host(1), h.Host(2))
	send := func() time.Duration {
		data, back := make([]byte, 400<<10), make([]byte, 400<<10)
		conn.SetDeadline(time.Now().Add(patience))
		began := time.Now()
		go conn.Write(data)
		if _, err := io.ReadFull(conn, back); err != nil {
			t.Error(err)
		}
		return time.Since(began)
	}
	remove, err := h.Shape(map[Link]Quality{{1, Everybody}: {Limit: 100 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	limited := send()
	if limited < 2*time.Second {
		t.Errorf("400 KiB at 100 KiB/s in %v", limited)
	}
	if err := errors.Join(remove(), remove()); err != nil {
		t.Fatal(err)
	}
	if took := send(); took >= limited {
		t.Errorf("400 KiB in %v with a limit and in %v without", limited, took)
	}
}

func TestHosts_Shape_impossible(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	for name, links := range map[string]map[Link]Quality{
		"no such host": {{1, 3}: {Cut: true}},
		"to itself":    {{1, 1}: {Cut: true}},
		"no share":     {{1, 2}: {Loss: 1.5}},
		"no time":      {{1, 2}: {Delay: -1}},
		"no rate":      {{1, Everybody}: {Limit: -1}},
		"of one link":  {{1, 2}: {Limit: 1}},
		"all cut":      {{1, Everybody}: {Cut: true}},
	} {
		if _, err := h.Shape(links); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNew_fails(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{0, 10} {
		if h, err := New(nodes, 1); err == nil || h != nil {
			t.Errorf("%d hosts: %v, %v", nodes, h, err)
		}
	}
}

// inode returns the kernel's name of the host's namespace.
func inode(t *testing.T, ns *namespace) string {
	t.Helper()
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", ns.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// waitGone waits until no thread of any process is in the namespaces.
func waitGone(t *testing.T, namespaces ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		used := map[string]string{}
		tasks, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			if name, err := os.Readlink(task); err == nil {
				used[name] = task
			}
		}
		var left []string
		for _, ns := range namespaces {
			if task, ok := used[ns]; ok {
				left = append(left, ns+" of "+task)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", left)
		}
	}
}

func TestHosts_Close(t *testing.T) {
	t.Parallel()
	h := newHosts(t, 2)
	command := exec.Command("true")
	if err := errors.Join(h.Host(1).Start(command), command.Wait()); err != nil {
		t.Fatal(err)
	}
	namespaces := []string{inode(t, h.Host(1).ns), inode(t, h.Host(2).ns)}
	if err := errors.Join(h.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	waitGone(t, namespaces...)
	if err := h.Host(1).Start(exec.Command("true")); !errors.Is(err, errClosed) {
		t.Errorf("start on a closed host: %v", err)
	}
	if _, err := h.Shape(map[Link]Quality{{1, 2}: {Cut: true}}); !errors.Is(err, errClosed) {
		t.Errorf("shape closed hosts: %v", err)
	}
}

// crashEnv makes the test's process one that will be killed.
const crashEnv = "CLAIMQ_TEST_CRASH"

// However the program is killed, nothing of the network remains.
func TestHosts_crash(t *testing.T) {
	t.Parallel()
	needRoot(t)
	if os.Getenv(crashEnv) != "" {
		h := newHosts(t, 2)
		sleeper := exec.Command("sleep", "1000")
		sleeper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := h.Host(1).Start(sleeper); err != nil {
			t.Fatal(err)
		}
		fmt.Println("namespaces:", inode(t, h.Host(1).ns), inode(t, h.Host(2).ns))
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHosts_crash$")
	cmd.Env = append(os.Environ(), crashEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var namespaces []string
	for lines := bufio.NewScanner(out); namespaces == nil && lines.Scan(); {
		if list, ok := strings.CutPrefix(lines.Text(), "namespaces: "); ok {
			namespaces = strings.Fields(list)
		}
	}
	if len(namespaces) != 2 {
		t.Fatalf("namespaces %q", namespaces)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	waitGone(t, namespaces...)
}
