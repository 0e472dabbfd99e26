package server

import "time"

// fileLookInterval is the interval at which the files of certificates and join keys are checked.
const fileLookInterval = 10 * time.Second

// watchFiles calls looks with the time every ten seconds and on SIGHUP, until stop is called, which waits for the
// end.
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
