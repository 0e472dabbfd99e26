// Package bound owns what a request may ask for: the limits of bodies and values, the
// bounds of fields, which names are allowed, and the words by which refusals say so.
// docs/limits.md and docs/api.md have the same numbers. It keeps no state.
package bound
