// Package term connects a command with its user. App has the streams, the width of the terminal, the clock and the
// environment. The package also maps errors to exit codes and texts, and prints tables, tasks and drawings of steps.
//
// Text from others goes through Printable before it is shown. On a terminal no line of a table is longer than the
// terminal is wide; elsewhere nothing is cut. This package never calls a server, and only App reaches the process's
// streams and variables.
package term
