// Package recipes only contains tests. They run the commands of README.md and the
// guides in docs/, and compare the output with the pages. Those of
// docs/operations.md run on simulated machines.
package recipes
