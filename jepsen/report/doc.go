// Package report draws a picture of a run for people: one HTML file without scripts and
// external resources.
package report
