package server

import "time"

// watchFiles calls looks with the time at the interval and on SIGHUP, until stop is called, which waits for the end.
func watchFiles(interval time.Duration, looks ...func(now time.Time)) (stop func()) {
	tick := time.NewTicker(interval)
	stopListening := newHangups().call(func() {
		for _, look := range looks {
			look(time.Now())
		}
	}, tick.C)
	return func() {
		stopListening()
		tick.Stop()
	}
}
