package record

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/wire"
)

// Fields reads or writes the fields of a record, or of the parts that commands share with
// records.
type Fields struct {
	wire.Fields
	names  *Names    // of records
	room   *TaskRoom // memory for new tasks; nil allocates
	shared bool      // params and payloads of tasks share memory with the message
}

// To returns Fields that append to b.
func To(b []byte) Fields { return Fields{Fields: wire.To(b)} }

// From returns Fields that read the message. They allocate everything but strings in names,
// which may be nil.
func From(message []byte, names *Names) Fields {
	return Fields{Fields: wire.From(message, nil), names: names}
}

// known is Text for names that many records share.
func (f *Fields) known(num protowire.Number, v *string) {
	if *v != "" || f.Num == num {
		if raw, ok := wire.Part(&f.Fields, num, *v); ok {
			*v = f.names.intern(raw)
		}
	}
}

// data is Bytes for the params or payload of a task.
func (f *Fields) data(num protowire.Number, v *[]byte) {
	if f.shared && f.Num == num {
		*v, _ = wire.Part(&f.Fields, num, *v)
		return
	}
	f.Bytes(num, v)
}

// TaskRoom is reusable memory for the new tasks of one message at a time.
type TaskRoom struct {
	Tasks []NewTask // at most TaskRoomMax
	names wire.Names
}

// TaskRoomMax is the number of tasks for which a TaskRoom keeps memory.
const TaskRoomMax = 1024

// From is like the function From, but reads into the room unless that is nil.
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
