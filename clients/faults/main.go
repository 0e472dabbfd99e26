package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout io.Writer) error {
	scripts, err := readScripts()
	if err != nil {
		return err
	}
	for _, s := range scripts {
		if len(args) == 0 {
			if _, err := fmt.Fprintln(stdout, s.Name); err != nil {
				return err
			}
			continue
		}
		if s.Name != args[0] {
			continue
		}
		c, err := start(s)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(stdout).Encode(c.plan()); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, stdin); err != nil {
			return err
		}
		return c.stop()
	}
	if len(args) > 0 {
		return fmt.Errorf("there is no script %q", args[0])
	}
	return nil
}
