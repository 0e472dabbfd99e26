// Package remember keeps the last claim that a client made of each task, so that a
// handler may name a task alone when it completes it.
//
// It owns its list and its bound; it knows neither calls nor leases.
package remember
