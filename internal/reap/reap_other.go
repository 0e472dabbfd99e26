//go:build !linux

package reap

import "context"

// Adopt does nothing: there are no containers.
func (c *Children) Adopt(context.Context) {}
