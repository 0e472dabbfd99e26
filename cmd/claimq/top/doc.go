// Package top is the live view of a cluster: its leader, tasks, rates, task types, workers and nodes.
//
// A Source asks the nodes, one request at a time, and returns a Look. A Model turns looks into a View: the state, and
// the rates between the last two looks. Draw turns a view into lines for a screen. Only the Source does I/O among
// these. Run shows the view on a terminal; Print and Stream write without one.
//
// The package changes nothing on the server. It relies only on docs/api.md and docs/metrics.md.
package top
