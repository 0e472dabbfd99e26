// Package duty contains what a leader does when the state has something due: expiring leases,
// ticks, evictions, types that their rate limit opens again, schedules, the bounds of the
// trail. Each is a loop that sleeps until the state says when, and then proposes.
//
// It does not look after members or ask other nodes; package cluster does. It decides nothing
// about tasks: a proposal that comes too late or twice does no harm.
package duty
