// Package recipes only contains tests. They run the commands of README.md and the guides in
// docs/ as they stand there, and compare the output with the pages. Those of
// docs/operations.md run on simulated machines.
package recipes
