// Package report draws a run: one HTML file without scripts and without
// anything from elsewhere, that a person can look at.
package report
