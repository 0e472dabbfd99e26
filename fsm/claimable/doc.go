// Package claimable decides which tasks can be claimed next: it keeps the task types, their
// claimable tasks, and what holds claims back, such as groups, a pause, a limit of claims or
// a rate limit.
//
// It owns the queues of all types and their order (package index implements them), which
// types their limits close, and which tasks have just become claimable. Everything here is
// derived: it is in no snapshot, and package fsm rebuilds it from the saved records. This
// package changes neither tasks nor settings; package fsm has the rules for what a claim
// does to the task, and its own counts by type.
//
// Package fsm reports a task by Enter and Leave, ends each change of one with Arrange, and
// reports changed settings with Limit; OpenDue advances the time. Between these calls the
// view of claims is incomplete. The choice depends only on the tasks, the settings and the
// time, never on the order of earlier changes.
package claimable
