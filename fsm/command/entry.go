package command

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/claimq/claimq/fsm/record"
)

// An entry of the log, as docs/formats.md draws it:
//
//	0         1         ...       ...        ...
//	+---------+---------+---------+----------+---------+---------+
//	| version | U       | T       | count    | command | ...     |
//	| 1 byte  | varint  | varint  | varint   |         | x count |
//	+---------+---------+---------+----------+---------+---------+
//
// and a command in it:
//
//	+---------+---------+--------------+
//	| type    | length  | body         |
//	| 1 byte  | varint  | length bytes |
//	+---------+---------+--------------+
//
// The body is a message of fsm.proto in the canonical form of package record. A new
// command type or field raises FeatureLevel and nothing here. version is record.Format.

// AppendEntryHeader appends the header of an entry of count commands. The commands follow,
// each written by AppendCommand.
func AppendEntryHeader(b []byte, s record.Stamp, count int) []byte {
	b = append(b, record.Format)
	b = protowire.AppendVarint(b, uint64(s.U))
	b = protowire.AppendVarint(b, uint64(s.T))
	return protowire.AppendVarint(b, uint64(count))
}

// AppendCommand appends one command of an entry. It writes nothing that DecodeEntry
// refuses: ids and tokens above 2^53, which never exist, become 2^53. It does not keep c's
// byte slices.
func AppendCommand(b []byte, c Command) []byte {
	b, start := record.BeginLength(append(b, byte(c.kind())))
	return record.EndLength(appendBody(b, c, &names{}), start)
}

// appendBody appends the command's body: the message of the same name in fsm.proto. before has
// the names of the ops before it in a batch, and then also those of c.
func appendBody(b []byte, c Command, before *names) []byte {
	f := fields{Fields: record.To(b), before: *before}
	switch c := c.(type) { // the most frequent ones, without a copy on the heap
	case Submit:
		c.fields(&f)
	case ClaimNext:
		c.fields(&f)
	case Complete:
		c.fields(&f)
	default:
		_, f = c.code(f)
	}
	*before = f.before
	return f.Out
}

// AppendEntry appends a whole entry: AppendEntryHeader and the commands.
func AppendEntry(b []byte, s record.Stamp, commands ...Command) []byte {
	b = AppendEntryHeader(b, s, len(commands))
	for _, c := range commands {
		b = AppendCommand(b, c)
	}
	return b
}

// DecodeEntry decodes an entry. The commands share no memory with entry. Absent lists,
// strings and bytes decode as nil and "". AppendEntry turns the result back into the same
// bytes.
//
// Errors, wrapped with the place and the cause: record.ErrCorrupt; record.ErrDevelopment;
// record.ErrUnknown for a version, a command type, a field or an enum value that this binary does
// not know.
func DecodeEntry(entry []byte) (record.Stamp, []Command, error) {
	stamp, count, rest, err := DecodeHeader(entry)
	if err != nil {
		return record.Stamp{}, nil, err
	}
	commands := make([]Command, 0, count)
	err = Each(rest, count, nil, func(_ int, c Command) error {
		commands = append(commands, c)
		return nil
	})
	if err != nil {
		return record.Stamp{}, nil, err
	}
	return stamp, commands, nil
}

// DecodeHeader decodes the header of an entry. rest follows it, and is long enough for count
// commands. Errors: those of DecodeEntry.
func DecodeHeader(entry []byte) (s record.Stamp, count int, rest []byte, err error) {
	if len(entry) == 0 {
		return record.Stamp{}, 0, nil, fmt.Errorf("%w: the entry is empty", record.ErrCorrupt)
	}
	if err := record.CheckFormat("an entry", entry[0]); err != nil {
		return record.Stamp{}, 0, nil, err
	}
	rest = entry[1:]
	var header [3]uint64
	for i := range header {
		v, n := record.Varint(rest)
		if n == 0 {
			return record.Stamp{}, 0, nil, fmt.Errorf("%w: bad varint in the entry's header", record.ErrCorrupt)
		}
		header[i], rest = v, rest[n:]
	}
	if header[2] > uint64(len(rest)/commandMin) {
		return record.Stamp{}, 0, nil, fmt.Errorf("%w: %d commands in %d bytes", record.ErrCorrupt, header[2], len(rest))
	}
	return record.Stamp{U: int64(header[0]), T: int64(header[1])}, int(header[2]), rest, nil
}

// commandMin is the size of the smallest command: a type and a length of 0.
const commandMin = 2

// Each decodes count commands, which must be all of b, and calls do with each before it
// decodes the next. If s is nil, do may keep the command; otherwise the command shares
// memory with s.
func Each(b []byte, count int, s *Scratch, do func(i int, c Command) error) error {
	for i := range count {
		c, size, err := decodeCommand(b, s)
		if err == nil {
			err = do(i, c)
		}
		if err != nil {
			return fmt.Errorf("command %d of %d: %w", i+1, count, err)
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last command", record.ErrCorrupt, len(b))
	}
	return nil
}

// decodeCommand decodes the command at the start of b, into s unless that is nil. size is
// its length in b.
func decodeCommand(b []byte, s *Scratch) (c Command, size int, err error) {
	if len(b) < commandMin {
		return nil, 0, fmt.Errorf("%w: it is cut off", record.ErrCorrupt)
	}
	length, n := record.Varint(b[1:])
	if n == 0 {
		return nil, 0, fmt.Errorf("%w: bad length", record.ErrCorrupt)
	}
	if rest := len(b) - 1 - n; length > uint64(rest) {
		return nil, 0, fmt.Errorf("%w: length %d of %d bytes", record.ErrCorrupt, length, rest)
	}
	size = 1 + n + int(length)
	k, body := Kind(b[0]), b[1+n:size]
	c, err = decodeBody(k, body, s, &names{})
	return c, size, err
}

// decodeBody decodes the body of a command of kind k, into s unless that is nil. The
// command shares no memory with body. before is as in appendBody.
func decodeBody(k Kind, body []byte, s *Scratch, before *names) (Command, error) {
	row := k.Row()
	if row == nil {
		return nil, fmt.Errorf("%w: type %d", record.ErrUnknown, k)
	}
	if s != nil {
		if c, ok, err := s.decode(k, body, before); ok {
			return decoded(k, c, err)
		}
	}
	c, f := row.of.code(fields{Fields: record.From(body, nil), before: *before})
	*before = f.before
	return decoded(k, c, f.Err)
}

// decoded returns the command, or the error with its kind.
func decoded(k Kind, c Command, err error) (Command, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	return c, nil
}
