package fsm

// AppendEntryHeader appends the header of an entry of count commands. The
// commands follow, each by AppendCommand.
func AppendEntryHeader(b []byte, s Stamp, count int) []byte { panic("stub") }

// AppendCommand appends one command of an entry.
func AppendCommand(b []byte, c Command) []byte { panic("stub") }

// AppendEntry appends a whole entry: AppendEntryHeader and the commands.
func AppendEntry(b []byte, s Stamp, commands ...Command) []byte { panic("stub") }

// DecodeEntry decodes an entry. The commands share no memory with entry.
// Errors: ErrCorrupt; ErrUnknownCommand.
func DecodeEntry(entry []byte) (Stamp, []Command, error) { panic("stub") }
