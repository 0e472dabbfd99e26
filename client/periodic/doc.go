// Package periodic submits a task for each time of a schedule that stands in the program's
// code. Every replica of the program runs it, and there is one task for each time all the
// same:
//
//	daily, err := periodic.Cron("30 2 * * *", "Europe/Prague")
//	...
//	p, err := periodic.New(c, periodic.Config{}, periodic.Schedule{
//		Name: "nightly-report", Slots: daily,
//		Task: func(slot time.Time) (client.Task, error) { return client.NewTask("report", Report{Day: slot}) },
//	})
//	err = p.Run(ctx) // until ctx ends
//
// It needs a key that may submit, and no more. A schedule of the cluster (Client.SetSchedule) needs
// an operator's, and in turn runs while no replica does.
//
// # Once
//
// The idempotency key of a task is made of the schedule's name and the time that it is for,
// its slot: so the first replica that submits it makes the task, and the others find it. The
// slots of all replicas have to be the same: Every counts from the beginning of 1970, not from
// the program's. A task that comes before its slot by the server's clock, since a replica's is
// ahead, waits for it (Task.RunAt).
//
// The key is known as long as the task is there: for its retention after its end, a day unless
// the type or the server says otherwise. That has to be more than Config.CatchUp and what the
// replicas' clocks differ by. A task that says itself that it is kept for less than ten minutes
// longer than CatchUp is refused; one that is deleted by hand within CatchUp may be made again.
//
// # Missed slots
//
// When Run begins it submits the slots of the last Config.CatchUp: those that were missed,
// for no replica was running, become tasks, and the others are there. It cannot know when the
// schedule was first deployed, as tasks of before may be gone by now: so the first Run ever makes
// tasks for these slots, too, unless Schedule.Since says that they were none. Of each
// schedule it makes up for the latest 100 at most. While the cluster does not answer a slot
// is tried until it is older than CatchUp, and then passed over, which Config.OnError hears.
//
// # What the task says
//
// The labels schedule and slot of the task are the schedule's name and its time; SlotOf reads
// them in a handler.
package periodic
