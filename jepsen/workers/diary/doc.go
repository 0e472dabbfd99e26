// Package diary is shared by worker processes and the harness that starts them: the lines
// in which a worker records what its handlers see and do, the clock of those lines, and
// what a handler should do with a task.
//
// Each process writes its own file, line by line, so that everything that it wrote before a
// SIGKILL is there. Package workers reads them.
package diary
