#!/bin/bash
# NATS JetStream 2.15.2 (nats.go 1.55.0): a worker whose AckWait has passed, so that its message was
# delivered to another, may still acknowledge it. The server confirms that (DoubleAck), the message
# is gone, and the other one's acknowledgement is confirmed, too: both are told that they did it.
# The late one may even say Nak: the message is delivered a third time while the second still works,
# whose confirmed acknowledgement then removes it under the third.
# In claimq each claim has a token: what comes late is refused (docs/guarantees.md).
# Source: processAckMsg and processNak in server/consumer.go look for the message by its sequence in
# the stream; which delivery it was, which the reply subject says, too, they do not compare.
# Needs Go and its proxy. Fails if the behaviour is no longer there.
set -euo pipefail
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$dir"' EXIT
cd "$dir"
GOBIN=$dir go install github.com/nats-io/nats-server/v2@v2.15.2 2>install.txt || { cat install.txt; exit 1; }
cat >main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn := must(nats.Connect(os.Args[1], nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1)))
	defer conn.Close()
	await(conn.IsConnected)
	js := must(jetstream.New(conn))
	for _, way := range []string{"ack", "nak"} {
		s := must(js.CreateStream(ctx, jetstream.StreamConfig{Name: way, Subjects: []string{way}, Retention: jetstream.WorkQueuePolicy}))
		c := must(s.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second}))
		must(js.Publish(ctx, way, []byte("task")))
		first := next(c)
		second := next(c) // once the first one's time is over
		fmt.Printf("%s: deliveries %d and %d\n", way, delivery(first), delivery(second))
		if way == "nak" {
			check(first.Nak())
			third := next(c)
			fmt.Printf("%s: after the first one's late nak delivery %d\n", way, delivery(third))
			fmt.Printf("%s: second acknowledges: %v; third: %v\n", way, second.DoubleAck(ctx), third.DoubleAck(ctx))
			continue
		}
		fmt.Printf("%s: first acknowledges late: %v", way, first.DoubleAck(ctx))
		fmt.Printf("; messages left: %d", must(s.Info(ctx)).State.Msgs)
		fmt.Printf("; second acknowledges: %v\n", second.DoubleAck(ctx))
	}
}

func next(c jetstream.Consumer) jetstream.Msg { return must(c.Next(jetstream.FetchMaxWait(20 * time.Second))) }

func delivery(m jetstream.Msg) uint64 { return must(m.Metadata()).NumDelivered }

func await(met func() bool) {
	for end := time.Now().Add(time.Minute); !met(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			panic("nothing happened")
		}
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
GO
printf 'module late\ngo 1.26\nrequire github.com/nats-io/nats.go v1.55.0\n' >go.mod
go mod tidy >tidy.txt 2>&1 || { cat tidy.txt; exit 1; }
go build -o late .
host=127.31.0.2 # an address of loopback with all ports free
./nats-server --jetstream --store_dir "$dir/data" --addr $host --port 4222 >server.txt 2>&1 &
server=$!
./late nats://$host:4222 | tee out.txt
grep -q '^ack: deliveries 1 and 2$' out.txt
grep -q '^ack: first acknowledges late: <nil>; messages left: 0; second acknowledges: <nil>$' out.txt
grep -q '^nak: after the first one.s late nak delivery 3$' out.txt
grep -q '^nak: second acknowledges: <nil>; third: <nil>$' out.txt
echo "seen: as the comment says"
