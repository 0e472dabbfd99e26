package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// countReads reads tasks linearizably at the leader, on as many connections as the
// load has, and prints how many a second that were.
func (s *scaling) countReads(ctx context.Context) error {
	leader, err := s.nodes.WaitLeader(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, s.reading)
	defer stop()
	var reads atomic.Int64
	var readers sync.WaitGroup
	failed := make(chan error, s.conns)
	begun := time.Now()
	for k := range s.conns {
		readers.Go(func() {
			if err := readTasks(ctx, leader.HTTPAddr, s.held/s.conns*k, &reads); err != nil {
				failed <- err
			}
		})
	}
	readers.Wait()
	took := time.Since(begun)
	select {
	case err := <-failed:
		return fmt.Errorf("read tasks: %w", err)
	default:
	}
	fmt.Fprintf(s.out, "%d connections: %.0f linearizable reads of a task a second\n", s.conns, float64(reads.Load())/took.Seconds())
	return nil
}

// readTasks reads tasks behind from, one after the other, until ctx ends. It speaks
// HTTP by itself, with little work for each: it shares the processors with the nodes.
func readTasks(ctx context.Context, addr string, from int, reads *atomic.Int64) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is under way
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	var request, answer []byte
	for i := 0; ctx.Err() == nil; i++ {
		request = append(request[:0], "GET /api/tasks/"...)
		request = strconv.AppendInt(request, int64(from+1+i%1000), 10)
		request = append(append(append(request, " HTTP/1.1\r\nHost: "...), addr...), "\r\n\r\n"...)
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if answer, err = readAnswer(in, answer); err != nil {
			return err
		}
		reads.Add(1)
	}
	return nil
}

// readAnswer reads one answer, which must be a success, and returns its body, in the
// memory of into if that is enough.
func readAnswer(in *bufio.Reader, into []byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return into, err
	}
	if !strings.HasPrefix(string(line), "HTTP/1.1 2") {
		return into, fmt.Errorf("an answer of %q", line)
	}
	length := -1
	for {
		line, err = in.ReadSlice('\n')
		if err != nil {
			return into, err
		}
		if len(line) == len("\r\n") {
			break
		}
		if text, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
				return into, err
			}
		}
	}
	if length < 0 {
		return into, errors.New("an answer without a length")
	}
	into = slices.Grow(into[:0], length)[:length]
	_, err = io.ReadFull(in, into)
	return into, err
}
