// Package encode appends what of the state is shown: tasks, steps, schedules and counts,
// as docs/api.md has them, fields in its order. It owns no state and decides nothing;
// it reads what package fsm gives, and keeps none of it. Its output is held against the
// types of package wire by the tests.
package encode
