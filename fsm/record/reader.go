package record

import "github.com/claimq/claimq/fsm/wire"

// Reader reads a record, or a part of a command that records have, too: beside the
// fields it knows what new tasks are decoded into.
type Reader struct {
	wire.Reader
	plain bool      // of a NewTask: one that has no steps, so that nothing nests
	room  *TaskRoom // nil: memory of their own
}

// ReaderOf returns a reader of the message, which makes memory of its own for all.
func ReaderOf(message []byte) Reader {
	return Reader{Reader: wire.Reader{Rest: message}}
}

// TaskRoom is memory that new tasks are decoded into again and again: those of one
// message at a time.
type TaskRoom struct {
	Tasks []NewTask // at most TaskRoomMax
	names wire.Names
}

// TaskRoomMax is how many tasks a TaskRoom keeps room for.
const TaskRoomMax = 1024

// ReaderOf returns a reader of the message, which decodes into the room unless that is nil.
func (room *TaskRoom) ReaderOf(message []byte) Reader {
	r := ReaderOf(message)
	if room != nil {
		r.room, r.Names = room, &room.names
	}
	return r
}

// take returns an empty slice with room for n tasks.
func (room *TaskRoom) take(n int) []NewTask {
	if room == nil || n > TaskRoomMax {
		return make([]NewTask, 0, n)
	}
	if n > len(room.Tasks) {
		room.Tasks = make([]NewTask, n)
	}
	return room.Tasks[:0:n]
}
