// Package periodic submits a task for each time of a schedule that is defined in the program's code. Every replica of
// the program runs it, and still there is only one task for each time:
//
//	daily, err := periodic.Cron("30 2 * * *", "Europe/Prague")
//	...
//	p, err := periodic.New(c, periodic.Config{}, periodic.Schedule{
//		Name: "nightly-report", Slots: daily,
//		Task: func(slot time.Time) (client.Task, error) { return client.NewTask("report", Report{Day: slot}) },
//	})
//	err = p.Run(ctx) // until ctx ends
//
// It only needs a key that may submit. A schedule in the cluster (Client.SetSchedule) needs an operator's key, but
// also runs while no replica does.
//
// # Once
//
// The idempotency key of a task consists of the schedule's name and its time, the slot. The first replica that
// submits it creates the task, and the others find it. All replicas must compute the same slots. For that reason
// Every counts from the beginning of 1970 and not from the program's start. If a replica's clock is ahead of the
// server's, the task waits for its slot (Task.RunAt).
//
// The key is known as long as the task exists: for its retention after its end, by default a day. The retention has
// to be longer than Config.CatchUp plus the difference between the replicas' clocks. A task whose own Retention is
// less than CatchUp plus ten minutes is refused. A task that is deleted by hand within CatchUp may be submitted
// again.
//
// # Missed slots
//
// When Run begins, it submits the slots of the last Config.CatchUp. Slots that were missed because no replica was
// running become tasks; for the others the tasks exist already. Run cannot know when the schedule was first deployed,
// because earlier tasks may have been removed. The very first Run therefore creates tasks for these slots, too,
// unless they are before Schedule.Since. It catches up on at most the latest 100 slots of each schedule. While the
// cluster does not answer, a slot is tried until it is older than CatchUp; then it is skipped and reported to
// Config.OnError.
//
// # Labels
//
// The task has the labels schedule and slot with the schedule's name and the slot's time. Use SlotOf to read them in
// a handler.
package periodic
