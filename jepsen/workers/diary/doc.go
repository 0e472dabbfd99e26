// Package diary is what worker processes and the harness that starts them share:
// the lines in which a worker writes down what its handlers see and do, the clock
// of those lines, and what a handler is to do with a task.
//
// Each process writes a file of its own, a line at a time, so that what it wrote
// before a SIGKILL is there. Package workers reads them.
package diary
