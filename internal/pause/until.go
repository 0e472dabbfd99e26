package pause

import (
	"context"
	"fmt"
	"time"
)

// Until asks until there is no error, and waits for d in between. When ctx ends first it
// returns why that ended, and the last error.
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
