package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/claimq/claimq/cmd/claimq/term"
	"github.com/claimq/claimq/internal/bytesize"
)

// inputBytesMax bounds a read of a file or of standard input. The server takes no request above 8 MiB.
const inputBytesMax = 8 << 20

// jsonArgument returns the JSON of an argument: the argument itself, the content of FILE for @FILE, or standard input
// for -. Errors use name.
func jsonArgument(a *term.App, name, arg string) ([]byte, error) {
	var data []byte
	var err error
	switch {
	case arg == "-":
		data, err = readInput(a, arg)
	case strings.HasPrefix(arg, "@"):
		data, err = readInput(a, arg[1:])
	default:
		data = []byte(arg)
	}
	if err != nil {
		return nil, term.UsageErrorf("%s: %w", name, err)
	}
	data = bytes.TrimSpace(data)
	if !json.Valid(data) {
		return nil, term.UsageErrorf("%s is not JSON: %s\nA text is JSON in quotes: '\"text\"'; @FILE reads a file, - standard input.", name, term.CutTo(term.Printable(string(data)), 40))
	}
	return data, nil
}

// readInput reads all of the named input, up to inputBytesMax.
func readInput(a *term.App, name string) ([]byte, error) {
	in, err := openInput(a, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, inputBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > inputBytesMax {
		return nil, fmt.Errorf("it has more than %s", bytesize.Text(inputBytesMax))
	}
	return data, nil
}

// openInput opens a file, or standard input for -. A read of standard input ends when the process is told to stop.
func openInput(a *term.App, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.UntilStopped(a.Stdin)), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{a.UntilStopped(f), f}, nil
}

// jsonError puts err into the words of JSON: the fields of the text are read as strings in Go.
func jsonError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if wrong.Field == "" {
		return fmt.Errorf("it is not a JSON object")
	}
	return fmt.Errorf("%q must be a string", wrong.Field)
}

// withRaw encodes the struct v and adds raw JSON as one more field. It keeps raw byte for byte, because the user
// wrote it.
func withRaw(name string, raw []byte, v any) ([]byte, error) {
	object, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return withField(name, raw, object), nil
}

// withField returns the object with raw JSON as a new first field. If raw is nil, it adds nothing.
func withField(name string, raw, object []byte) []byte {
	if raw == nil {
		return object
	}
	b := append([]byte(`{"`+name+`":`), raw...)
	if len(object) > len("{}") {
		b = append(b, ',')
	}
	return append(b, object[1:]...)
}

// positive is the value of a flag that takes a number from 1 up; 0 means that the flag is not given. An explicit 0 is
// refused: if a script fails to read a token or an id, the check that uses it must not be switched off.
type positive uint64

// Set implements pflag.Value.
func (p *positive) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return errors.New("it must be a positive number")
	}
	*p = positive(n)
	return nil
}

// String implements pflag.Value.
func (p *positive) String() string { return strconv.FormatUint(uint64(*p), 10) }

// Type implements pflag.Value.
func (p *positive) Type() string { return "uint" }
