package command

// RestoreBegin begins a restore: the chunks that follow are a snapshot, as Graft
// gives it, that RestoreEnd makes the state. Any command but these three gives up
// what has been taken, so that nothing is left of a restore whose leader died.
// CodeNotEmpty if the state holds anything that a restore would destroy.
type RestoreBegin struct {
	Bytes uint64 // of the whole snapshot
}

func (RestoreBegin) kind() Kind { return KindRestoreBegin }

func (RestoreBegin) about() About { return About{} }

// RestoreChunk takes the next bytes of the snapshot. CodeInvalidRequest, and the
// restore is given up, if they are not the next ones, or no part of a snapshot.
type RestoreChunk struct {
	Begin  uint64 // index of the entry of the RestoreBegin
	Offset uint64 // of Data in the snapshot
	Data   []byte
}

func (RestoreChunk) kind() Kind { return KindRestoreChunk }

func (RestoreChunk) about() About { return About{} }

// RestoreEnd makes the snapshot that was taken the state, if all of it is there, is
// verified as ReadSnapshot does, and follows the state's clocks, counters and level.
// Else it changes nothing: CodeInvalidRequest.
type RestoreEnd struct {
	Begin uint64 // as in RestoreChunk
}

func (RestoreEnd) kind() Kind { return KindRestoreEnd }

func (RestoreEnd) about() About { return About{} }

// code goes through the fields of
//
//	message RestoreBegin {
//	  uint64 bytes = 1;  // of the whole snapshot
//	}
func (c RestoreBegin) code(f fields) (Command, []byte, error) {
	f.Uint(1, &c.Bytes)
	return done(c, &f)
}

// code goes through the fields of
//
//	message RestoreChunk {
//	  uint64 begin = 1;   // index of the entry of the RestoreBegin
//	  uint64 offset = 2;  // of data in the snapshot
//	  bytes data = 3;
//	}
func (c RestoreChunk) code(f fields) (Command, []byte, error) {
	f.Uint(1, &c.Begin)
	f.Uint(2, &c.Offset)
	f.Bytes(3, &c.Data)
	return done(c, &f)
}

// code goes through the fields of
//
//	message RestoreEnd {
//	  uint64 begin = 1;  // index of the entry of the RestoreBegin
//	}
func (c RestoreEnd) code(f fields) (Command, []byte, error) {
	f.Uint(1, &c.Begin)
	return done(c, &f)
}
