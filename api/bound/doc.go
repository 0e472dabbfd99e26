// Package bound defines what a request may ask for: the limits of bodies and values, the bounds of fields, the valid
// names, and the words for them in refusals. docs/limits.md and docs/api.md have the same numbers. It keeps no state.
package bound
