// Package duty is what a leader does because the state has something for it to do: leases
// that run out, ticks, evictions, types that their rate limit opens again, schedules, the
// bounds of the trail. Each is a loop that sleeps until the state says when, and proposes.
//
// What it does not do: it looks after no member and asks no other node; package cluster does.
// It decides nothing about tasks: what it proposes comes too late, or twice, without harm.
package duty
