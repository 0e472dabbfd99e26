package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// listen opens the socket for programs that are started elsewhere.
func (p *pool) listen() (net.Listener, error) {
	// A process that was killed leaves its socket behind.
	if conn, err := net.Dial("unix", p.o.Listen); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("listen at %s: another process does", p.o.Listen)
	} else if errors.Is(err, syscall.ECONNREFUSED) {
		if err := os.Remove(p.o.Listen); err != nil {
			return nil, fmt.Errorf("listen at %s: %w", p.o.Listen, err)
		}
	}
	l, err := net.Listen("unix", p.o.Listen)
	if err != nil {
		return nil, err
	}
	// Only programs of the same user may connect.
	if err := os.Chmod(p.o.Listen, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	p.log("waiting at %s for a program", p.o.Listen)
	return l, nil
}

// accept takes connecting programs, up to their bound, until ctx ends.
func (p *pool) accept(ctx context.Context, l net.Listener) {
	end := context.AfterFunc(ctx, func() { l.Close() }) //nolint:errcheck // accept hears of it
	defer end()
	places := make(chan struct{}, p.o.Processes)
	var running sync.WaitGroup
	defer running.Wait()
	for number := 1; ; number++ {
		places <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			return
		}
		of := newProgram(fmt.Sprintf("program %d", number), p, conn, func() { conn.Close() }) //nolint:errcheck // it ends by it
		running.Go(func() {
			defer func() { <-places }()
			p.add(of)
			defer p.remove(of)
			if ctx.Err() != nil {
				of.stop()
			}
			p.log("%s has connected", of.name)
			of.run(func() (string, error) { return "it closed its socket", nil })
			p.log("%s has gone", of.name)
		})
	}
}
