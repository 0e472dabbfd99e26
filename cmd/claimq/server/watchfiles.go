package server

import "time"

// fileLookInterval is how often the files of certificates and of the join keys are
// looked at.
const fileLookInterval = 10 * time.Second

// watchFiles looks every ten seconds and on SIGHUP until stop is called, which waits
// for that. Each look gets the time.
func watchFiles(looks ...func(now time.Time)) (stop func()) {
	tick := time.NewTicker(fileLookInterval)
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
