// Package index finds tasks for the state machine: which one a claim takes (Types), who holds
// which claims (Holdings), what is due when (Timeline), what ended last (Ends), and which record
// has a name (Names).
//
// Types decides which tasks can be claimed next. It keeps the task types, their claimable tasks,
// and what holds claims back: groups, a pause, a limit of claims, a rate limit. Package fsm
// reports a task by Enter and Leave, ends each change of one with Arrange, and reports changed
// settings with SetRecord; OpenDue advances the time. Between these calls the view of claims is
// incomplete. What a claim does to the task is a rule of package fsm.
//
// Read it from the parts to the whole. A queue (queue.go, fifo.go) has the tasks with the same
// number of attempts left, by priority and id; a stock (stock.go) has the queues of one share.
// Tournaments (tournament.go, ranking.go) find the first among many. A Type (type.go) has a stock
// and its shares (share.go, gate.go), which take turns if it is fair (turn.go, lead.go). A claim
// goes through chooser.go, or through draw.go, climb.go and ladder.go if it is random or needs
// attempts left.
//
// Everything here is derived, except for the tags and clocks of turns, which package fsm saves for
// it (Turns): the rest is in no snapshot, and package fsm rebuilds it from the saved records. This
// package changes neither tasks nor settings; it owns the layout of the indexes in memory and
// their cost.
//
// An index yields results by its contents and the time that it is told, never by the order in
// which they were added. As everywhere in the state machine, nothing depends on a clock, on chance
// or on map order.
package index
