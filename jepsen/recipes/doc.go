// Package recipes has no code but a test: it runs the commands of
// docs/operations.md, as they stand there, on machines of a laboratory, and holds
// what they print against the page.
package recipes
