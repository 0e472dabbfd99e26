// Command resize makes a picture smaller. It is the command of a worker: claimq work runs it once for every task of a
// type and handles the claims.
//
//	go build -o /tmp/resize ./examples/resize
//	claimq work --type resize --concurrency 2 -- /tmp/resize -dir /tmp/pictures
//
// It reads the task's parameters from standard input and prints the result. Its exit code is 0 for success, 100 if no
// further attempt can help, and 1 otherwise. README.md says how to try it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// paramsBytesMax bounds the input read from standard input.
const paramsBytesMax = 64 << 10

// These exit codes have a meaning for claimq work.
const (
	exitRetry = 1
	exitNever = 100
)

// errNever is returned when no further attempt can help.
var errNever = errors.New("no attempt can help")

// params holds a task's parameters: slash-separated names in the folder, and a width in pixels.
type params struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Width int    `json:"width"`
}

// result is the result of the task.
type result struct {
	Width  int `json:"width"`
	Height int `json:"height"`
	Bytes  int `json:"bytes"`
}

func main() {
	dir := flag.String("dir", ".", "folder of the pictures; nothing outside of it is read or written")
	flag.Parse()
	err := run(*dir, os.Stdin, os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "resize:", err) // the task's error shows this
	if errors.Is(err, errNever) {
		os.Exit(exitNever)
	}
	os.Exit(exitRetry)
}

// run makes the picture for the parameters in in, and writes the result to out.
func run(dir string, in io.Reader, out io.Writer) error {
	p, err := readParams(in)
	if err != nil {
		return fmt.Errorf("%w: %w", errNever, err)
	}
	root, err := os.OpenRoot(dir) // a disk that is not mounted yet may be mounted later
	if err != nil {
		return err
	}
	defer root.Close()
	picture, err := load(root, p.From)
	if err != nil {
		return err
	}
	small := shrink(picture, p.Width)
	data, err := encode(small, p.To)
	if err != nil {
		return err
	}
	if err := save(root, p.To, data); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result{Width: small.Rect.Dx(), Height: small.Rect.Dy(), Bytes: len(data)})
}

// readParams reads and checks the parameters.
func readParams(in io.Reader) (params, error) {
	var p params
	data, err := io.ReadAll(io.LimitReader(in, paramsBytesMax))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("decode the parameters: %w", err)
	}
	switch {
	case !filepath.IsLocal(p.From) || !filepath.IsLocal(p.To):
		return p, fmt.Errorf("from is %q and to is %q: they must be names in the folder", p.From, p.To)
	case filepath.Clean(p.From) == filepath.Clean(p.To):
		return p, errors.New("from and to are the same: an attempt that is repeated would not find the picture that the first one found")
	case p.Width < 1 || p.Width > sideMax:
		return p, fmt.Errorf("width is %d: it must be 1 to %d", p.Width, sideMax)
	}
	return p, nil
}
