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
)

func jetStream() system {
	return system{
		name: "NATS JetStream", program: "nats-server", install: "go install github.com/nats-io/nats-server/v2@v2.15.2",
		durable: "fsync on 2 of 3 nodes (`sync_interval: always`, R3, file); so does an acknowledgement (double ack)",
		version: natsVersion,
		start:   startNATS,
	}
}

// natsVersion refuses versions below 2.10, because they cannot sync before they confirm.
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

// startNATS starts three nodes of NATS with a work queue on all of them. Like its Go client, it uses one connection,
// to the node that leads the queue.
func startNATS(ctx context.Context, path string, s *site) (queue, error) {
	ports, err := s.ports(6)
	if err != nil {
		return nil, err
	}
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
`, name, local(port), filepath.Join(s.dir, name), local(ports[3+i]), strings.Join(routes, `", "`))
		file := filepath.Join(s.dir, name+".conf")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return nil, err
		}
		if err := s.start(name, exec.Command(path, "-c", file)); err != nil {
			return nil, err
		}
	}
	leader := ""
	if err := s.until(ctx, func(ctx context.Context) (err error) {
		leader, err = natsPrepare(ctx, urls["n1"])
		return err
	}); err != nil {
		return nil, err
	}
	conn, err := nats.Connect(urls[leader])
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { conn.Close(); return nil })
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	workers, err := js.Consumer(ctx, natsStream, "workers")
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, n int, handle func([]byte), of *load) error {
		messages, err := workers.Messages(jetstream.PullMaxMessages(n))
		if err != nil {
			return err
		}
		of.ends = append(of.ends, messages.Stop)
		var loops []loop
		for range n {
			of.submit = append(of.submit, func(ctx context.Context, task []byte) error {
				_, err := js.Publish(ctx, natsSubject, task)
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
		of.together(loops)
		return nil
	}, nil
}

// natsPrepare makes the stream and its consumer. It returns the stream's leader when the stream is on all nodes.
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
