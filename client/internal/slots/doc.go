// Package slots counts how many more tasks a worker may claim, in total and of each type. It claims nothing itself.
package slots
