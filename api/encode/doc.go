// Package encode appends tasks, steps, schedules and counts to answers, with the fields and their order of
// docs/api.md. It has no state, decides nothing, and does not retain what package fsm gives it. Its output is checked
// against the types of package wire by the tests.
package encode
