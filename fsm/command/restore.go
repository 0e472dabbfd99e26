package command

// RestoreBegin begins a restore: the chunks that follow form a snapshot as fsm.SavedBackup.Graft
// returns it, and RestoreEnd makes it the state. Any other command abandons the restore, so that
// nothing is left over if the leader died during it. CodeNotEmpty if the state holds anything that
// a restore would destroy.
type RestoreBegin struct {
	Bytes uint64 // of the whole snapshot
}

func (RestoreBegin) kind() Kind { return KindRestoreBegin }

func (RestoreBegin) about() About { return About{} }

// RestoreChunk adds the next bytes of the snapshot. CodeInvalidRequest, and the restore is
// abandoned, if they are not the next bytes or not part of a valid snapshot.
type RestoreChunk struct {
	Begin  uint64 // index of the entry of the RestoreBegin
	Offset uint64 // of Data in the snapshot
	Data   []byte
}

func (RestoreChunk) kind() Kind { return KindRestoreChunk }

func (RestoreChunk) about() About { return About{} }

// RestoreEnd makes the received snapshot the state. The snapshot must be complete, pass the checks
// of fsm.ReadSnapshot, and not be behind the state's clocks, counters and level. Otherwise nothing
// changes: CodeInvalidRequest.
type RestoreEnd struct {
	Begin uint64 // as in RestoreChunk
}

func (RestoreEnd) kind() Kind { return KindRestoreEnd }

func (RestoreEnd) about() About { return About{} }

// code reads or writes the fields of
//
//	message RestoreBegin {
//	  uint64 bytes = 1;  // of the whole snapshot
//	}
func (c RestoreBegin) code(f fields) (Command, fields) {
	f.Uint(1, &c.Bytes)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message RestoreChunk {
//	  uint64 begin = 1;   // index of the entry of the RestoreBegin
//	  uint64 offset = 2;  // of data in the snapshot
//	  bytes data = 3;
//	}
func (c RestoreChunk) code(f fields) (Command, fields) {
	f.Uint(1, &c.Begin)
	f.Uint(2, &c.Offset)
	f.Bytes(3, &c.Data)
	return done(c, &f)
}

// code reads or writes the fields of
//
//	message RestoreEnd {
//	  uint64 begin = 1;  // index of the entry of the RestoreBegin
//	}
func (c RestoreEnd) code(f fields) (Command, fields) {
	f.Uint(1, &c.Begin)
	return done(c, &f)
}
