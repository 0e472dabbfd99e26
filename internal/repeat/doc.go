// Package repeat decides what a client does after one try of a call: take the answer,
// follow a redirect, try again and after which pause, or give up because the outcome is
// unknown. It has no clock, no network and no goroutines.
package repeat
