package record

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// Fields goes through the fields of a record, or of a part of a command that records
// have, too: beside the fields it knows what new tasks are read into.
type Fields struct {
	wire.Fields
	names  *Names    // of records
	room   *TaskRoom // nil: memory of their own
	shared bool      // params and payloads of tasks are parts of what is read
}

// To returns what appends fields to b.
func To(b []byte) Fields { return Fields{Fields: wire.To(b)} }

// From returns what reads the fields of the message, which makes memory of its own for
// all but the names, of which nil has none.
func From(message []byte, names *Names) Fields {
	return Fields{Fields: wire.From(message, nil), names: names}
}

// known is Text for a name that many records have.
func (f *Fields) known(num protowire.Number, v *string) {
	if *v != "" || f.Num == num {
		if raw, ok := wire.Part(&f.Fields, num, *v); ok {
			*v = f.names.intern(raw)
		}
	}
}

// data is Bytes for the params or the payload of a task.
func (f *Fields) data(num protowire.Number, v *[]byte) {
	if f.shared && f.Num == num {
		*v, _ = wire.Part(&f.Fields, num, *v)
		return
	}
	f.Bytes(num, v)
}

// TaskRoom is memory that new tasks are read into again and again: those of one
// message at a time.
type TaskRoom struct {
	Tasks []NewTask // at most TaskRoomMax
	names wire.Names
}

// TaskRoomMax is how many tasks a TaskRoom keeps room for.
const TaskRoomMax = 1024

// From is From, but reads into the room unless that is nil.
func (room *TaskRoom) From(message []byte) Fields {
	if room == nil {
		return From(message, nil)
	}
	return Fields{Fields: wire.From(message, &room.names), room: room}
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
