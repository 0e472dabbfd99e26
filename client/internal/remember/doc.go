// Package remember keeps the last claim that a client made of each task, so that a program can complete a task by its
// id alone.
//
// It bounds its list itself, and knows neither calls nor leases.
package remember
