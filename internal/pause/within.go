package pause

import (
	"context"
	"time"
)

// Within calls do with a deadline.
func Within(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}
