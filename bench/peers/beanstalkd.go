package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

func beanstalk() system {
	return system{
		name: "beanstalkd", program: "beanstalkd", install: "apt-get install beanstalkd",
		durable: "fsync on its one node, which has no copy; so does an acknowledgement",
		version: func(ctx context.Context, path string) (string, error) {
			return say(ctx, regexp.MustCompile(`beanstalkd (\S+)`), path, "-v")
		},
		start: startBeanstalkd,
	}
}

// startBeanstalkd starts a single node, because beanstalkd has no clusters. Each producer and each consumer has its
// own connection, because a connection runs one command at a time.
func startBeanstalkd(ctx context.Context, path string, s *site) (queue, error) {
	ports, err := s.ports(1)
	if err != nil {
		return nil, err
	}
	if err := s.start("beanstalkd", exec.Command(path, "-l", "127.0.0.1", "-p", strconv.Itoa(ports[0]), "-b", s.dir, "-f", "0")); err != nil {
		return nil, err
	}
	addr := local(ports[0])
	if err := s.until(ctx, func(ctx context.Context) error { return listening(ctx, addr) }); err != nil {
		return nil, err
	}
	return func(ctx context.Context, n int, handle func([]byte), of *load) error {
		connect := func() (*beanstalkConn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			of.ends = append(of.ends, func() { _ = conn.Close() })
			return &beanstalkConn{conn, bufio.NewReader(conn)}, nil
		}
		var loops []loop
		for range n {
			producer, err := connect()
			if err != nil {
				return err
			}
			consumer, err := connect()
			if err != nil {
				return err
			}
			of.submit = append(of.submit, producer.put)
			loops = append(loops, func(ctx context.Context) error { return consumer.work(ctx, handle) })
		}
		of.together(loops)
		return nil
	}, nil
}

// beanstalkConn is a connection for one goroutine.
type beanstalkConn struct {
	conn net.Conn
	r    *bufio.Reader
}

// call sends a command and returns the numbers in the answer. The answer must have the form of want.
func (c *beanstalkConn) call(want, command string, args ...any) ([]int, error) {
	if _, err := fmt.Fprintf(c.conn, command, args...); err != nil {
		return nil, err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	numbers := make([]int, strings.Count(want, "%d"))
	into := make([]any, len(numbers))
	for i := range numbers {
		into[i] = &numbers[i]
	}
	if _, err := fmt.Sscanf(line, want, into...); err != nil {
		return nil, fmt.Errorf("beanstalkd answered %q: want %q", line, want)
	}
	return numbers, nil
}

// put submits a task.
func (c *beanstalkConn) put(_ context.Context, task []byte) error {
	_, err := c.call("INSERTED %d", "put 0 0 60 %d\r\n%s\r\n", len(task), task)
	return err
}

// work reserves a task, has it handled, and deletes it. The connection is closed when ctx ends.
func (c *beanstalkConn) work(ctx context.Context, handle func([]byte)) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	of, err := c.call("RESERVED %d %d", "reserve\r\n")
	if err != nil {
		return err
	}
	task := make([]byte, of[1]+len("\r\n"))
	if _, err := io.ReadFull(c.r, task); err != nil {
		return err
	}
	handle(task[:of[1]])
	_, err = c.call("DELETED", "delete %d\r\n", of[0])
	return err
}
