package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/wire"
)

// TestServer_Bodies checks that large requests being received take no more memory than permitted, and that small ones
// continue.
func TestServer_Bodies(t *testing.T) {
	t.Parallel()
	const half = 600 << 10
	s, _ := setup(t, func(c *Config) {
		c.Limits.BodyBytes, c.BodiesBytes = 1<<20, door.BodyCopies*(1<<20+headerBytes)
	})
	addr := listen(t, s)
	head := func(size int) string {
		return fmt.Sprintf("POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", size)
	}
	body := `{"params":"` + strings.Repeat("x", half-13) + `"}`
	first, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := io.WriteString(first, head(half)+body[:half-1]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() > half/2 })

	for range 3 {
		got := raw(t, addr, head(half)+body)
		if f := got.refused(t, wire.CodeOverloaded); f["reason"] != "bodies" || got.header["Retry-After"] != "1" {
			t.Errorf("another: %v, Retry-After %q", f, got.header["Retry-After"])
		}
	}
	if got := raw(t, addr, head(30<<10)+`{"params":"`+strings.Repeat("x", 30<<10-13)+`"}`); got.status != 201 {
		t.Errorf("a small one: %d %.200s", got.status, got.body)
	}
	if _, err := io.WriteString(first, body[half-1:]); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, bufio.NewReader(first)); got.status != 201 {
		t.Errorf("the first: %d %.200s", got.status, got.body)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() == 0 })
	if got := raw(t, addr, head(half)+body); got.status != 201 {
		t.Errorf("after it: %d %.200s", got.status, got.body)
	}
	// A closed connection leaves nothing behind.
	gone, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(gone, head(half)+body[:half-1]); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() > half/2 })
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() == 0 })
}

// TestServer_BodiesPassedOn ensures that large requests forwarded by other nodes count, too, until they are answered.
func TestServer_BodiesPassedOn(t *testing.T) {
	t.Parallel()
	const length = 1 << 20
	s, _ := setup(t, func(c *Config) {
		c.Limits.BodyBytes, c.BodiesBytes = length, door.BodyCopies*(length+headerBytes)
	})
	first := dial(t, listen(t, s), fmt.Sprintf("POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", length/2))
	waitFor(t, func() bool { return s.core.port.BodyBytes() > 0 })
	body := `{"params":"` + strings.Repeat("x", length*3/4) + `"}`
	if f := do(t, s.ForwardHandler(), "POST /api/tasks", body).refused(t, wire.CodeOverloaded); f["reason"] != "bodies" {
		t.Errorf("beside a large one: %v", f)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return s.core.port.BodyBytes() == 0 })
	do(t, s.ForwardHandler(), "POST /api/tasks", body).good(t, 201)
	if n := s.core.port.BodyBytes(); n != 0 {
		t.Errorf("%d bytes are counted after the answer", n)
	}
}

// The memory of a large body is reused once its request is answered, unless it is too large to keep.
func TestServer_BodiesGoRound(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	addr := listen(t, s)
	kept := make([]byte, 100<<10)
	s.core.port.Buffers.Put(kept)
	for _, size := range []int{50 << 10, 60 << 10, 600 << 10} {
		body := `{"params":"` + strings.Repeat("x", size-13) + `"}`
		head := fmt.Sprintf("POST /api/tasks HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", size)
		if got := raw(t, addr, head+body); got.status != 201 {
			t.Fatalf("%d bytes: %d %.200s", size, got.status, got.body)
		}
		again := s.core.port.Buffers.Get(1)
		if &again[:1][0] != &kept[0] {
			t.Fatalf("%d bytes: the memory that was kept has gone", size)
		}
		if read := string(kept[:min(size, len(kept))]) == body[:min(size, len(kept))]; read != (size <= len(kept)) {
			t.Errorf("%d bytes: they are in the memory that was kept: %v", size, read)
		}
		s.core.port.Buffers.Put(again)
	}
}
