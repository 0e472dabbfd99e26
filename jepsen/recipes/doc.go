// Package recipes has no code but tests: they run the commands of README.md and of
// the guides in docs/, as they stand there, and hold what they print against the
// pages. Those of docs/operations.md run on machines of a laboratory.
package recipes
