package main

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// startRabbitTenants starts RabbitMQ. Each tenancy has a new queue or, to tell tenants apart, one for each of them.
func startRabbitTenants(ctx context.Context, path string, s *site) (tenancies, error) {
	nodes, err := startRabbitNodes(ctx, path, s)
	if err != nil {
		return nil, err
	}
	conn, err := amqp.Dial(nodes.url)
	if err != nil {
		return nil, err
	}
	s.ends = append(s.ends, func() error { _ = conn.Close(); return nil }) // no call is in progress
	return func(ctx context.Context, apart bool, tenants int) (tenancy, error) {
		queues := []string{"peers-" + rand.Text()}
		if apart {
			for tenant := range tenants - 1 {
				queues = append(queues, queues[0]+tenantName(tenant))
			}
		}
		if err := nodes.declare(ctx, queues); err != nil {
			return tenancy{}, err
		}
		producers := make([]*amqp.Channel, tenants)
		for tenant := range producers {
			ch, err := conn.Channel()
			if err == nil {
				err = ch.Confirm(false)
			}
			if err != nil {
				return tenancy{}, err
			}
			producers[tenant] = ch
		}
		return tenancy{
			submit: func(ctx context.Context, tenant int, tasks [][]byte) error {
				return rabbitSubmit(ctx, producers[tenant], queues[tenant%len(queues)], tasks)
			},
			work: func(ctx context.Context, workers int, handle func([]byte)) error {
				return rabbitWorkers(ctx, nodes.url, workers, queues, handle)
			},
			end: func(context.Context) error {
				var errs []error
				for _, queue := range queues {
					_, err := producers[0].QueueDelete(queue, false, false, false)
					errs = append(errs, err)
				}
				for _, ch := range producers {
					errs = append(errs, ch.Close())
				}
				return errors.Join(errs...)
			},
		}, nil
	}, nil
}

// rabbitSubmit publishes the tasks and waits until all are confirmed.
func rabbitSubmit(ctx context.Context, ch *amqp.Channel, queue string, tasks [][]byte) error {
	confirmations := make([]*amqp.DeferredConfirmation, len(tasks))
	for i, task := range tasks {
		var err error
		if confirmations[i], err = rabbitPublish(ctx, ch, queue, task); err != nil {
			return err
		}
	}
	for _, confirmation := range confirmations {
		if err := rabbitConfirmed(ctx, confirmation); err != nil {
			return err
		}
	}
	return nil
}

// rabbitWorkers has the workers take tasks of the queues, one at a time each, until ctx ends. Each has its own
// channel.
func rabbitWorkers(ctx context.Context, url string, workers int, queues []string, handle func([]byte)) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	var (
		loops     []loop
		of        load
		consuming sync.WaitGroup
	)
	consumeCtx, stop := context.WithCancel(ctx)
	for range workers {
		deliveries, err := rabbitConsumers(consumeCtx, conn, queues, &consuming)
		if err != nil {
			stop()
			return errors.Join(err, conn.Close())
		}
		loops = append(loops, func(ctx context.Context) error { return rabbitWork(ctx, deliveries, handle) })
	}
	of.together(loops)
	err = of.consume(ctx)
	stop()
	err = errors.Join(err, conn.Close())
	consuming.Wait()
	return err
}

// rabbitConsumers opens a channel that consumes from all queues, and returns its tasks in the order in which they
// come. Of each queue it holds one that is not acknowledged: quorum queues have no prefetch for a channel as a whole.
func rabbitConsumers(ctx context.Context, conn *amqp.Connection, queues []string, consuming *sync.WaitGroup) (<-chan amqp.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Qos(1, 0, false); err != nil {
		return nil, err
	}
	all := make(chan amqp.Delivery) // which serves those that wait to send in their order
	for _, queue := range queues {
		deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
		if err != nil {
			return nil, err
		}
		consuming.Go(func() {
			for d := range deliveries {
				select {
				case all <- d:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return all, nil
}
