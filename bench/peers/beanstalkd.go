package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/claimq/claimq/jepsen/procs"
)

// beanstalkd is one node, which has no others. Each producer and each consumer has a
// connection of its own, since each connection has one command under way.
type beanstalkd struct {
	addr    string
	running processes
	release func()
}

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

func startBeanstalkd(ctx context.Context, path, dir string) (queue, error) {
	ports, release, err := procs.TakePorts(1)
	if err != nil {
		return nil, err
	}
	q := &beanstalkd{addr: local(ports[0]), release: release}
	p, err := start(dir, "beanstalkd", exec.Command(path, "-l", "127.0.0.1", "-p", strconv.Itoa(ports[0]), "-b", dir, "-f", "0"))
	if err != nil {
		release()
		return nil, err
	}
	q.running = processes{p}
	if err := q.running.until(ctx, func(ctx context.Context) error { return listening(ctx, q.addr) }); err != nil {
		return nil, errors.Join(err, q.close())
	}
	return q, nil
}

func (q *beanstalkd) close() error {
	q.running.end()
	q.release()
	return nil
}

func (q *beanstalkd) prepare(ctx context.Context, n int, handle func([]byte)) (of load, err error) {
	var conns []net.Conn
	of.close = func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
	defer func() {
		if err != nil {
			of.close()
		}
	}()
	connect := func() (*beanstalkConn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", q.addr)
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
		return &beanstalkConn{conn, bufio.NewReader(conn)}, nil
	}
	var loops []loop
	for range n {
		producer, err := connect()
		if err != nil {
			return of, err
		}
		of.submit = append(of.submit, producer.put)
		consumer, err := connect()
		if err != nil {
			return of, err
		}
		loops = append(loops, func(ctx context.Context) error { return consumer.work(ctx, handle) })
	}
	of.consume, of.settled = together(loops)
	return of, nil
}

// beanstalkConn is a connection, for one goroutine.
type beanstalkConn struct {
	conn net.Conn
	r    *bufio.Reader
}

// call sends a command and returns the numbers of the answer, which must be of this form.
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

// work reserves a task, has it handled, and deletes it. The connection is closed when ctx
// ends.
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
