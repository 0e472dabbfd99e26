package server

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// fileLookInterval is how often the files of certificates and of the join keys are
// looked at.
const fileLookInterval = 10 * time.Second

// watchFiles looks every ten seconds and on SIGHUP until stop is called, which waits
// for that. Each look gets the time.
func watchFiles(looks ...func(now time.Time)) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(fileLookInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-hangups:
			case <-ended:
				return
			}
			for _, look := range looks {
				look(time.Now())
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(ended)
		<-over
	}
}
