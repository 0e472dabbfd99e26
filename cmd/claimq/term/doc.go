// Package term is what a command has of the outside world, and what it shows there:
// App, its streams, the terminal's width, the clock and the environment; the table from
// error to exit code and to what the user reads; tables, tasks and drawings of steps.
//
// Whatever others wrote goes through Printable before it is shown. On a terminal no line
// of a table is longer than the terminal is wide; elsewhere nothing is cut. Nothing here
// calls a server, and nothing but App reaches the process's streams and variables.
package term
