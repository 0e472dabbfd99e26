package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/cmd/claimq/session"
	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
)

// These bounds of one submit --file request are below the server's.
const (
	fileItemsMax = 1_000
	fileTasksMax = 10_000 // items together with their steps
	fileBytesMax = 7 << 20
	lineBytesMax = 4 << 20 // per line; params have at most 1 MiB
)

// errRefusedLines counts the lines that the server refused. Each of them is named.
type errRefusedLines int

func (e errRefusedLines) Error() string {
	return "refused: " + term.Count(int(e), "line") + "\nCorrect them, and submit only these."
}

// fileSubmit is a running submit --file.
type fileSubmit struct {
	s        session.Talk
	taskType string // for lines that name none

	body    []byte
	items   []fileItem // the items in body
	tasks   int        // items together with their steps
	unkeyed bool       // an item has no key, so the request must not be repeated
	created int
	existed int
	refused int
}

// fileItem is one task of a request.
type fileItem struct {
	line   int  // its number in the file
	ownKey bool // its key is random: if it is taken, an earlier try of ours took it
}

func submitFile(a *term.App, cmd *cobra.Command, o *submitOptions, args []string) error {
	for _, name := range o.taskFlagNames {
		if cmd.Flags().Changed(name) {
			return term.UsageErrorf("--file does not go with --%s: it stands in its lines", name)
		}
	}
	if len(args) > 1 {
		return term.UsageErrorf("--file does not go with PARAMS: they stand in its lines")
	}
	input, err := openInput(a, o.file)
	if err != nil {
		return term.UsageErrorf("--file: %w", err)
	}
	defer input.Close()
	return session.With(a, &o.Flags, func(s session.Talk) error {
		fs := &fileSubmit{s: s}
		if len(args) == 1 {
			fs.taskType = args[0]
		}
		if err := fs.run(cmd.Context(), input); err != nil {
			return err
		}
		if o.Output == "table" {
			if err := a.Sayf("submitted %s, %s there already, %s refused", term.Count(fs.created, "task"), term.Number(fs.existed), term.Count(fs.refused, "line")); err != nil {
				return err
			}
		}
		if fs.refused > 0 {
			return errRefusedLines(fs.refused)
		}
		return nil
	})
}

// run submits the lines of input. It holds at most one request in memory.
func (fs *fileSubmit) run(ctx context.Context, input io.Reader) error {
	scanner := bufio.NewScanner(input)
	scanner.Buffer(make([]byte, 0, 64<<10), lineBytesMax)
	number := 0
	for scanner.Scan() {
		line := scanner.Bytes()
		if number++; number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff")) // some editors write a byte order mark
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if err := fs.add(ctx, number, line); err != nil {
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		if errors.Is(err, term.ErrStopped) {
			return fmt.Errorf("%w: the lines from %d on are not submitted", err, fs.next(number+1))
		}
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("it has more than %s", bytesize.Text(lineBytesMax))
		}
		if sendErr := fs.send(ctx); sendErr != nil {
			return sendErr
		}
		return term.UsageErrorf("line %d: %w\nThe lines before it are submitted.", number+1, err)
	}
	return fs.send(ctx)
}

// next returns the first line that is not sent yet: number, or a line before it.
func (fs *fileSubmit) next(number int) int {
	if len(fs.items) > 0 {
		return fs.items[0].line
	}
	return number
}

// add puts a line into the next request. If that request is full, it sends it first.
func (fs *fileSubmit) add(ctx context.Context, number int, line []byte) error {
	var task map[string]json.RawMessage
	if err := json.Unmarshal(line, &task); err != nil || task == nil {
		return fs.refuse(number, "it is not a JSON object")
	}
	item := fs.item(line, task)
	var steps []json.RawMessage
	_ = json.Unmarshal(task["steps"], &steps) // the server refuses a value that is no array
	size := 1 + len(steps)
	if len(fs.items) == fileItemsMax || len(fs.items) > 0 && (fs.tasks+size > fileTasksMax || len(fs.body)+len(item) > fileBytesMax) {
		if err := fs.send(ctx); err != nil {
			return err
		}
	}
	if len(fs.items) == 0 {
		fs.body = append(fs.body[:0], `{"tasks":[`...)
	} else {
		fs.body = append(fs.body, ',')
	}
	fs.body = append(fs.body, item...)
	key, hasKey := task["idempotency_key"]
	if string(key) == "null" { // for the server this means no key, and the user chose it
		fs.unkeyed = true
	}
	fs.items = append(fs.items, fileItem{line: number, ownKey: !hasKey})
	fs.tasks += size
	return nil
}

// item adds what a line leaves out: a random key, which makes the request repeatable, and the type. It keeps the rest
// as the user wrote it.
func (fs *fileSubmit) item(line []byte, task map[string]json.RawMessage) []byte {
	var front []byte
	if _, ok := task["idempotency_key"]; !ok {
		front = fmt.Appendf(front, `"idempotency_key":%q,`, rand.Text())
	}
	if _, ok := task["task_type"]; !ok && fs.taskType != "" {
		name, _ := json.Marshal(fs.taskType) // encoding a string cannot fail
		front = append(append(append(front, `"task_type":`...), name...), ',')
	}
	if len(task) == 0 {
		front = bytes.TrimSuffix(front, []byte{','})
	}
	return append(append([]byte{'{'}, front...), line[1:]...)
}

// send sends the request, if it has any item, and reports the refused lines.
func (fs *fileSubmit) send(ctx context.Context) error {
	if len(fs.items) == 0 {
		return nil
	}
	first, last := fs.items[0].line, fs.items[len(fs.items)-1].line
	unknown := fmt.Sprintf("Of the file, %s may be submitted, those before are. Lines with an idempotency_key can be submitted again.", lines(first, last))
	r, err := session.Post("/api/tasks", append(fs.body, "]}"...), unknown)
	if err != nil {
		return err
	}
	r.Repeatable = !fs.unkeyed
	var answer wire.Answer
	if _, err := fs.s.Call(ctx, r, &answer); err != nil {
		return fs.explain(err, first, last)
	}
	if len(answer.Results) != len(fs.items) {
		return fmt.Errorf("%s: the answer has %d results for %d tasks", lines(first, last), len(answer.Results), len(fs.items))
	}
	for i, r := range answer.Results {
		switch {
		case r.Code != "" || r.Error != "":
			if err := fs.refuse(fs.items[i].line, r.Error+" ("+string(r.Code)+")"); err != nil {
				return err
			}
		case r.Created || fs.items[i].ownKey:
			fs.created++
		default:
			fs.existed++
		}
	}
	fs.body, fs.items, fs.tasks, fs.unkeyed = fs.body[:0], fs.items[:0], 0, false
	return nil
}

func (fs *fileSubmit) refuse(number int, why string) error {
	fs.refused++
	return fs.s.App.Notef("line %d: %s", number, term.Printable(why))
}

func lines(first, last int) string {
	if first == last {
		return fmt.Sprintf("line %d", first)
	}
	return fmt.Sprintf("lines %d to %d", first, last)
}

// explain says which lines a failed call carried.
func (fs *fileSubmit) explain(err error, first, last int) error {
	var call *term.CallError
	if !errors.As(err, &call) {
		return fmt.Errorf("%s: %w", lines(first, last), err)
	}
	call.About = lines(first, last) + ": "
	if number, ok := fs.lineOf(err); ok {
		call.About = fmt.Sprintf("%s: not submitted because of line %d, those before are: ", lines(first, last), number)
	}
	return call
}

// lineOf returns the line that the refusal of a whole request names.
func (fs *fileSubmit) lineOf(err error) (number int, ok bool) {
	var refusal *client.Error
	if !errors.As(err, &refusal) {
		return 0, false
	}
	var details struct{ Field string }
	if json.Unmarshal(refusal.Details, &details) != nil {
		return 0, false
	}
	var item int
	if _, err := fmt.Sscanf(details.Field, "tasks[%d]", &item); err != nil || item < 0 || item >= len(fs.items) {
		return 0, false
	}
	return fs.items[item].line, true
}
