package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/claimq/claimq/jepsen/procs"
)

// natsNodes is three nodes of NATS with a work queue on all of them, used over one
// connection, as its Go client does, to the node that leads the queue.
type natsNodes struct {
	running processes
	release func()
	conn    *nats.Conn
	js      jetstream.JetStream
	workers jetstream.Consumer
}

func jetStream() system {
	return system{
		name: "NATS JetStream", program: "nats-server", install: "go install github.com/nats-io/nats-server/v2@v2.15.2",
		durable: "fsync on 2 of 3 nodes (`sync_interval: always`, R3, file); so does an acknowledgement (double ack)",
		version: natsVersion,
		start:   startNATS,
	}
}

// natsVersion refuses versions below 2.10: they cannot sync before they confirm.
func natsVersion(ctx context.Context, path string) (string, error) {
	version, err := say(ctx, regexp.MustCompile(`v(\d+\.\d+\S*)`), path, "--version")
	if err != nil {
		return "", err
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil || major < 2 || major == 2 && minor < 10 {
		return "", fmt.Errorf("%s is %s, which cannot sync before it confirms: 2.10 and later can", path, version)
	}
	return version, nil
}

const (
	natsStream  = "PEERS"
	natsSubject = "peers"
	natsAckWait = time.Minute
)

func startNATS(ctx context.Context, path, dir string) (_ queue, err error) {
	ports, release, err := procs.TakePorts(6)
	if err != nil {
		return nil, err
	}
	q := &natsNodes{release: release}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.close())
		}
	}()
	clients, routes := ports[:3], make([]string, 3)
	for i, port := range ports[3:] {
		routes[i] = "nats://" + local(port)
	}
	urls := make(map[string]string, len(clients))
	for i, port := range clients {
		name := "n" + strconv.Itoa(i+1)
		urls[name] = "nats://" + local(port)
		config := fmt.Sprintf(`server_name: %s
listen: "%s"
jetstream { store_dir: "%s", sync_interval: always }
cluster { name: peers, listen: "%s", routes: ["%s"] }
`, name, local(port), filepath.Join(dir, name), local(ports[3+i]), strings.Join(routes, `", "`))
		file := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return nil, err
		}
		p, err := start(dir, name, exec.Command(path, "-c", file))
		if err != nil {
			return nil, err
		}
		q.running = append(q.running, p)
	}
	leader := ""
	if err := q.running.until(ctx, func(ctx context.Context) error {
		var err error
		leader, err = natsPrepare(ctx, urls["n1"])
		return err
	}); err != nil {
		return nil, err
	}
	if q.conn, err = nats.Connect(urls[leader]); err != nil {
		return nil, err
	}
	if q.js, err = jetstream.New(q.conn); err != nil {
		return nil, err
	}
	q.workers, err = q.js.Consumer(ctx, natsStream, "workers")
	return q, err
}

// natsPrepare makes the stream and its consumer, and returns the node that leads the
// stream, once it is on all nodes.
func natsPrepare(ctx context.Context, url string) (leader string, err error) {
	conn, err := nats.Connect(url)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsSubject}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: 3,
	})
	if err != nil {
		return "", err
	}
	if _, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: natsAckWait, MaxAckPending: 2 * countMax,
	}); err != nil {
		return "", err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return "", err
	}
	if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != 2 {
		return "", errors.New("the stream is not on three nodes")
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current || r.Offline {
			return "", fmt.Errorf("%s does not have the stream yet", r.Name)
		}
	}
	return info.Cluster.Leader, nil
}

func (q *natsNodes) prepare(_ context.Context, n int, handle func([]byte)) (load, error) {
	messages, err := q.workers.Messages(jetstream.PullMaxMessages(n))
	if err != nil {
		return load{}, err
	}
	of := load{close: messages.Stop}
	var loops []loop
	for range n {
		of.submit = append(of.submit, func(ctx context.Context, task []byte) error {
			_, err := q.js.Publish(ctx, natsSubject, task)
			return err
		})
		loops = append(loops, func(ctx context.Context) error {
			m, err := messages.Next(jetstream.NextContext(ctx))
			if err != nil {
				return err
			}
			handle(m.Data())
			return m.DoubleAck(ctx)
		})
	}
	of.consume, of.settled = together(loops)
	return of, nil
}

func (q *natsNodes) close() error {
	if q.conn != nil {
		q.conn.Close()
	}
	q.running.end()
	q.release()
	return nil
}
