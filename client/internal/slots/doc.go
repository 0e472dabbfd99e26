// Package slots counts how many more tasks a worker may claim, in all and of each type.
//
// It owns the counts; it claims nothing itself, and knows no tasks but by their types.
package slots
