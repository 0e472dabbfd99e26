package fsm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Golden files hold what was written once and must be read for ever. They are
// only ever added to: the flag writes those that are missing and never changes
// one that is there.
var addGolden = flag.Bool("add-golden", false, "write the golden files of formats that do not exist yet")

const goldenDir = "testdata/golden"

// goldenEntry is an entry that a golden file of its name holds.
type goldenEntry struct {
	name     string
	comment  string
	stamp    Stamp
	commands []Command
}

func goldenEntries() []goldenEntry {
	all := []goldenEntry{
		{"entry-empty", "no command, both clocks 0", Stamp{}, []Command{}},
		{"entry-batch", "what a busy leader packs together, most fields at their zero value", Stamp{U: 127, T: 128}, []Command{
			Submit{Tasks: []NewTask{{Type: "default", Params: []byte("1")}, {Type: "default", Payload: []byte{0}, MaxAttempts: 5}}},
			ClaimNext{WorkerID: "w", Limit: 1},
			Complete{Hold: Hold{ID: 1, WorkerID: "w"}},
			Tick{},
		}},
	}
	for _, c := range fullCommands() {
		all = append(all, goldenEntry{
			name: strings.ReplaceAll(c.kind().String(), " ", "-"), stamp: fullStamp, commands: []Command{c},
			comment: fmt.Sprintf("command type %d, %v, every field set", c.kind(), c.kind()),
		})
	}
	return all
}

// readGolden returns the bytes in a hex file: lines of comment begin with #.
func readGolden(t *testing.T, path string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(file)) {
		if !strings.HasPrefix(line, "#") {
			digits.WriteString(strings.TrimSpace(line))
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// addMissing writes the file if the flag is set and it does not exist.
func addMissing(t *testing.T, path string, content []byte) {
	t.Helper()
	if _, err := os.Stat(path); !*addGolden || !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// hexFile formats a hex file of 32 bytes a line.
func hexFile(comment string, b []byte) []byte {
	var file bytes.Buffer
	fmt.Fprintf(&file, "# %s\n", comment)
	for len(b) > 0 {
		n := min(32, len(b))
		fmt.Fprintf(&file, "%x\n", b[:n])
		b = b[n:]
	}
	return file.Bytes()
}

func TestGolden_Entries(t *testing.T) {
	t.Parallel()
	for _, g := range goldenEntries() {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			encoded := AppendEntry(nil, g.stamp, g.commands...)
			path := filepath.Join(goldenDir, g.name+".hex")
			addMissing(t, path, hexFile(g.comment, encoded))
			golden := readGolden(t, path)
			if !bytes.Equal(encoded, golden) {
				t.Errorf("it is encoded as\n%x, the golden file has\n%x", encoded, golden)
			}
			stamp, commands, err := DecodeEntry(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(g.commands, commands); diff != "" || stamp != g.stamp {
				t.Errorf("stamp %v, want %v; commands (-want +decoded):\n%s", stamp, g.stamp, diff)
			}
		})
	}
}

// Every golden file stays readable and is written the same way, also one whose
// values are no longer those that stand for all.
func TestGolden_FilesStayReadable(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.hex"))
	if err != nil || len(paths) < len(knownKinds()) {
		t.Fatalf("%d golden files (%v), want one of each of %d commands at least", len(paths), err, len(knownKinds()))
	}
	for _, path := range paths {
		golden := readGolden(t, path)
		stamp, commands, err := DecodeEntry(golden)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if again := AppendEntry(nil, stamp, commands...); !bytes.Equal(again, golden) {
			t.Errorf("%s is written anew as\n%x, want\n%x", path, again, golden)
		}
	}
}
