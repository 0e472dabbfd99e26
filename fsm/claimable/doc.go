// Package claimable knows what can be claimed next: the task types, of each the tasks that
// a claim could take, and what keeps a claim from them: groups, a pause, a limit of claims,
// a rate limit.
//
// It owns the queues of all types and the order among them (package index has how they
// lie), where each type stands by its limits, and what has just become claimable. All of it
// is derived: no snapshot has it, package fsm alone keeps it, and builds it again from the
// saved records. Neither tasks nor settings are changed here. What a claim does to the task
// that was chosen is a rule of package fsm, and so is what is counted of types beside.
//
// Its door: a task is told by Enter and Leave, each change of one is ended by Arrange, and
// each change of a type's settings by Limit; OpenDue lets time go on. In between claims do
// not see the state as it is. What is chosen depends on the tasks, the settings and the time
// alone, never on how they came to be.
package claimable
