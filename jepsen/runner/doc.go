// Package runner runs a cluster of real nodes under load and faults, and records everything
// that a judge needs to know.
package runner
