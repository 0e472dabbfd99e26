package pause

import (
	"context"
	"fmt"
	"time"
)

// Until calls ask until it returns no error, and waits for d in between. If ctx ends first,
// it returns the cause together with the last error.
func Until(ctx context.Context, d time.Duration, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if !For(ctx, d) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}
