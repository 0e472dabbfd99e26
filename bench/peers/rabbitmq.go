package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

func rabbitMQ() system {
	return system{
		name: "RabbitMQ", program: "rabbitmq-server", install: "apt-get install rabbitmq-server",
		durable: "fsync on 2 of 3 nodes (quorum queue, publisher confirms); nothing confirms an acknowledgement",
		most:    2000, // a connection has at most 2,047 channels
		version: rabbitVersion,
		start:   startRabbit,
	}
}

// rabbitVersion reads the version from the name of the scripts' folder. The scripts themselves would leave the daemon
// epmd running.
func rabbitVersion(_ context.Context, path string) (string, error) {
	real, err := filepath.EvalSymlinks(rabbitScript(path, "rabbitmq-server"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`rabbitmq_server-([^/]+)`).FindStringSubmatch(real)
	if m == nil {
		return "", fmt.Errorf("%s is in no folder that is named for its version", real)
	}
	return m[1], nil
}

// rabbitScript returns the path of a RabbitMQ script in the folder of the one at path. Debian's scripts in /usr/sbin
// are only for their own user and the machine's node. So it returns the scripts that these call, which work for any
// user.
func rabbitScript(path, name string) string {
	dir := filepath.Dir(path)
	if dir == "/usr/sbin" {
		dir = "/usr/lib/rabbitmq/bin"
	}
	return filepath.Join(dir, name)
}

const rabbitQueue = "peers"

// startRabbit starts three nodes of RabbitMQ with a quorum queue on all of them. As its guides recommend, it uses one
// connection for producers and one for consumers, to the node that leads the queue. Each producer and each consumer
// has its own channel.
func startRabbit(ctx context.Context, path string, s *site) (queue, error) {
	nodes, err := startRabbitNodes(ctx, path, s)
	if err != nil {
		return nil, err
	}
	if err := nodes.declare(ctx, []string{rabbitQueue}); err != nil {
		return nil, err
	}
	return func(_ context.Context, n int, handle func([]byte), of *load) error {
		return rabbitPrepare(nodes.url, n, handle, of)
	}, nil
}

// rabbit is three running nodes.
type rabbit struct {
	url string // of the first one
	ctl func(ctx context.Context, args ...string) ([]byte, error)
}

func startRabbitNodes(ctx context.Context, path string, s *site) (*rabbit, error) {
	ports, err := s.ports(7)
	if err != nil {
		return nil, err
	}
	dir := s.dir
	// Erlang's nodes find each other through the daemon epmd. This one ends with the run.
	names := ports[6]
	common := append(os.Environ(), "HOME="+dir, "ERL_EPMD_PORT="+strconv.Itoa(names), "ERL_EPMD_ADDRESS=127.0.0.1")
	epmd := exec.Command("epmd", "-address", "127.0.0.1", "-port", strconv.Itoa(names))
	epmd.Env = common
	if err := s.start("epmd", epmd); err != nil {
		return nil, err
	}
	if err := s.until(ctx, func(ctx context.Context) error { return listening(ctx, local(names)) }); err != nil {
		return nil, err
	}
	if err := rabbitFiles(dir); err != nil {
		return nil, err
	}
	for i := range 3 {
		server := exec.Command(rabbitScript(path, "rabbitmq-server"))
		server.Env = append(slices.Clone(common), rabbitEnv(dir, i, ports[2*i], ports[2*i+1])...)
		if err := s.start("server"+strconv.Itoa(i+1), server); err != nil {
			return nil, err
		}
		if i > 0 {
			continue
		}
		// The others join the first one. If all start at once on a busy machine, there may be two clusters.
		if err := s.until(ctx, func(ctx context.Context) error { return listening(ctx, local(ports[0])) }); err != nil {
			return nil, err
		}
	}
	ctl := func(ctx context.Context, args ...string) ([]byte, error) {
		return rabbitCtl(ctx, path, append(slices.Clone(common), "RABBITMQ_CONF_ENV_FILE="+filepath.Join(dir, "environment")), args...)
	}
	if err := s.until(ctx, func(ctx context.Context) error {
		_, err := ctl(ctx, "await_online_nodes", "3")
		return err
	}); err != nil {
		return nil, err
	}
	return &rabbit{"amqp://" + local(ports[0]), ctl}, nil
}

// declare makes quorum queues on all nodes. The first one leads them.
func (r *rabbit) declare(ctx context.Context, queues []string) error {
	conn, err := amqp.Dial(r.url)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	for i := 0; i < len(queues) && err == nil; i++ {
		_, err = ch.QueueDeclare(queues[i], true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-quorum-initial-group-size": 3})
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		return err
	}
	members, err := r.ctl(ctx, "list_queues", "members")
	if err != nil {
		return err
	}
	for i := range 3 {
		if bytes.Count(members, []byte(rabbitNode(i))) < len(queues) {
			return fmt.Errorf("a queue is not on three nodes: %s", members)
		}
	}
	return nil
}

// rabbitCtl asks the first node.
func rabbitCtl(ctx context.Context, path string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, rabbitScript(path, "rabbitmqctl"), append([]string{"--quiet", "--node", rabbitNode(0)}, args...)...)
	cmd.Env = env
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return text, nil
}

func rabbitNode(i int) string { return fmt.Sprintf("peers%d@localhost", i+1) }

// rabbitFiles writes the settings that the nodes share.
func rabbitFiles(dir string) error {
	var settings strings.Builder
	settings.WriteString("cluster_formation.peer_discovery_backend = classic_config\nlog.file = false\nlog.console = true\nlog.console.level = warning\n")
	for i := range 3 {
		fmt.Fprintf(&settings, "cluster_formation.classic_config.nodes.%d = %s\n", i+1, rabbitNode(i))
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "rabbitmq.conf"), []byte(settings.String()), 0o600),
		os.WriteFile(filepath.Join(dir, "plugins"), []byte("[].\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "environment"), nil, 0o600), // replaces the machine's file
		os.WriteFile(filepath.Join(dir, ".erlang.cookie"), []byte("PEERSONLOOPBACK"), 0o400),
	)
}

// rabbitEnv returns the environment of the i-th node.
func rabbitEnv(dir string, i, port, distPort int) []string {
	return []string{
		"RABBITMQ_NODENAME=" + rabbitNode(i),
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT=" + strconv.Itoa(port),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(distPort),
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"),
		"RABBITMQ_LOG_BASE=" + dir,
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"),
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "environment"),
		"RUNNING_UNDER_SYSTEMD=true", // the script becomes the server
	}
}

func rabbitPrepare(url string, n int, handle func([]byte), of *load) error {
	var conns [2]*amqp.Connection
	for i := range conns {
		conn, err := amqp.Dial(url)
		if err != nil {
			return err
		}
		of.ends = append(of.ends, func() { _ = conn.Close() }) // no call is in progress
		conns[i] = conn
	}
	var loops []loop
	for range n {
		submit, err := rabbitProducer(conns[0])
		if err != nil {
			return err
		}
		deliveries, err := rabbitConsumer(conns[1], rabbitQueue)
		if err != nil {
			return err
		}
		of.submit = append(of.submit, submit)
		loops = append(loops, func(ctx context.Context) error { return rabbitWork(ctx, deliveries, handle) })
	}
	of.together(loops)
	return nil
}

// rabbitProducer opens a channel and returns a function that publishes on it.
func rabbitProducer(conn *amqp.Connection) (func(ctx context.Context, task []byte) error, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, task []byte) error {
		confirmation, err := rabbitPublish(ctx, ch, rabbitQueue, task)
		if err != nil {
			return err
		}
		return rabbitConfirmed(ctx, confirmation)
	}, ch.Confirm(false)
}

func rabbitPublish(ctx context.Context, ch *amqp.Channel, queue string, task []byte) (*amqp.DeferredConfirmation, error) {
	return ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: task})
}

func rabbitConfirmed(ctx context.Context, confirmation *amqp.DeferredConfirmation) error {
	acked, err := confirmation.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("the task was not confirmed")
	}
	return err
}

// rabbitConsumer opens a channel that delivers one task at a time.
func rabbitConsumer(conn *amqp.Connection, queue string) (<-chan amqp.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Qos(1, 0, false); err != nil {
		return nil, err
	}
	return ch.Consume(queue, "", false, false, false, false, nil)
}

// rabbitWork takes a task, has it handled, and acknowledges it.
func rabbitWork(ctx context.Context, deliveries <-chan amqp.Delivery, handle func([]byte)) error {
	select {
	case d, open := <-deliveries:
		if !open {
			return errors.New("the channel was closed")
		}
		handle(d.Body)
		return d.Ack(false)
	case <-ctx.Done():
		return ctx.Err()
	}
}
