// Package top is the live view of a cluster: who leads, how much there is of what,
// how much happens a second, task types, workers and nodes.
//
// A Source asks the nodes, one request at a time, and answers a Look. A Model makes
// a View of the looks: what is there, and the rates between the last two. Draw makes
// lines of a view, for a screen of a size. All that is pure but the Source. Run
// ties them to a terminal; Print and Stream write without one.
//
// It changes nothing on the server, and knows no more than docs/api.md and
// docs/metrics.md say.
package top
