package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// These bound the sink.
const (
	talkMax      = 5 * time.Minute
	talkBytesMax = 1 << 20
	talksMax     = 100
	mailsMax     = 100_000
)

// sink is a mail server that prints the mails it gets.
type sink struct {
	delay time.Duration // before it says that it has a mail
	once  bool          // drop a mail whose Message-ID was already delivered

	// got, if not nil, is called with a mail's Message-ID before the sender learns that it was taken.
	got func(id string)

	mu    sync.Mutex // guards what follows
	out   io.Writer
	mails map[string]int // delivered, by Message-ID
}

// serve takes mails until ctx ends. It closes the listener.
func (s *sink) serve(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	s.print("mails come to %s", listener.Addr())
	var talks sync.WaitGroup
	defer talks.Wait()
	free := make(chan struct{}, talksMax)
	for {
		free <- struct{}{}
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		talks.Go(func() {
			s.talk(ctx, conn)
			<-free
		})
	}
}

func (s *sink) print(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// talk does as much SMTP as a sender of mails needs.
func (s *sink) talk(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(talkMax))
	c := textproto.NewConn(struct {
		io.Reader
		io.WriteCloser
	}{io.LimitReader(conn, talkBytesMax), conn})
	err := c.PrintfLine("220 sink.example is there")
	to := ""
	for err == nil {
		var line string
		if line, err = c.ReadLine(); err != nil {
			return
		}
		verb, rest, _ := strings.Cut(line, " ")
		answer := "250 fine"
		switch strings.ToUpper(verb) {
		case "EHLO", "HELO", "MAIL", "NOOP", "RSET":
		case "RCPT":
			to = strings.Trim(rest[strings.Index(rest, ":")+1:], "<> ")
		case "DATA":
			if err = c.PrintfLine("354 go on, and end with a dot"); err != nil {
				return
			}
			answer = s.take(ctx, to, c.DotReader())
		case "QUIT":
			_ = c.PrintfLine("221 goodbye")
			return
		default:
			answer = "502 this is only a sink"
		}
		err = c.PrintfLine("%s", answer)
	}
}

// take delivers a mail and returns the answer.
func (s *sink) take(ctx context.Context, to string, text io.Reader) string {
	m, err := mail.ReadMessage(text)
	if err == nil {
		_, err = io.Copy(io.Discard, m.Body)
	}
	if err != nil {
		return "554 that is no mail"
	}
	id := m.Header.Get("Message-ID")
	if !s.deliver(id, to) {
		return "452 too many mails"
	}
	if s.got != nil {
		s.got(id)
	}
	select {
	case <-time.After(s.delay):
	case <-ctx.Done():
	}
	return "250 taken"
}

func (s *sink) deliver(id, to string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mails == nil {
		s.mails = map[string]int{}
	}
	before := s.mails[id]
	if before == 0 && len(s.mails) == mailsMax {
		return false
	}
	switch {
	case before > 0 && s.once:
		fmt.Fprintf(s.out, "dropped %s: it was delivered before\n", id)
		return true
	case before > 0:
		fmt.Fprintf(s.out, "delivered %s to %s AGAIN\n", id, to)
	default:
		fmt.Fprintf(s.out, "delivered %s to %s\n", id, to)
	}
	s.mails[id]++
	return true
}
