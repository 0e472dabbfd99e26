// Package runner runs a cluster of real nodes under load and faults, and writes
// down all that a judge needs to know of it.
package runner
