package fsm

import "github.com/claimq/claimq/fsm/record"

// turns holds the order in which the shares of fair types take turns. It implements index.Turns.
type turns struct {
	table record.Table[record.Turn] // by number
}

// Begin adds a turn behind all others and returns its number. Numbers of former turns can be
// given again, because only those that are there compete.
func (u *turns) Begin(taskType, shareKey string, priority int32) (number uint64) {
	last, _ := u.table.Last()
	u.table.Put(last+1, &record.Turn{Type: taskType, ShareKey: shareKey, Priority: priority})
	return last + 1
}

// End removes a turn.
func (u *turns) End(number uint64) { u.table.Remove(number) }

// bytes estimates the memory of all.
func (u *turns) bytes() int64 {
	return int64(u.table.Len())*record.TurnBytes + int64(u.table.Gaps())*record.PlaceBytes
}
