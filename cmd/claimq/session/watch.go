package session

import (
	"context"
	"fmt"
	"time"

	"github.com/claimq/claimq/cmd/claimq/term"
)

// clearScreen clears the screen and moves the cursor to its top.
const clearScreen = "\x1b[H\x1b[2J"

// Watch calls show at every interval until ctx ends or the server refuses. Each look begins with the time, on a
// terminal at the top of a cleared screen. If no node answers, Watch says so and looks again.
func Watch(ctx context.Context, s Talk, interval time.Duration, show func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if s.Flags.Output != "json" {
			clear := ""
			if s.App.Width > 0 {
				clear = clearScreen
			}
			fmt.Fprintf(s.App.Stdout, "%s%s UTC\n\n", clear, s.App.Clock().UTC().Format(term.ExactTime))
		}
		err := show()
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C ends it
		case err != nil && term.ExitCode(err) != term.ExitUnknown:
			return err
		case err != nil:
			fmt.Fprintln(s.App.Stderr, "claimq: "+term.ErrorText(nil, err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
