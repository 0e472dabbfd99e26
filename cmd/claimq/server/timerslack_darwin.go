package server

// SetTimerSlack does nothing: macOS coalesces timers by itself.
func SetTimerSlack() {}
