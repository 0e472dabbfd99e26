package periodic_test

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/periodic"
)

func Example() {
	hourly, err := periodic.Every(time.Hour)
	if err != nil {
		panic(err)
	}
	daily, err := periodic.Cron("30 2 * * *", "Europe/Prague")
	if err != nil {
		panic(err)
	}
	task := func(taskType string) func(time.Time) (client.Task, error) {
		return func(slot time.Time) (client.Task, error) {
			return client.NewTask(taskType, map[string]time.Time{"for": slot})
		}
	}
	c, err := client.New(client.Config{})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	p, err := periodic.New(c, periodic.Config{CatchUp: time.Hour},
		periodic.Schedule{Name: "sync", Slots: hourly, Task: task("sync")},
		periodic.Schedule{Name: "nightly-report", Slots: daily, Task: task("report")})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	stop()
	fmt.Println(p.Run(ctx)) // in a goroutine of each replica
	// Output: <nil>
}
