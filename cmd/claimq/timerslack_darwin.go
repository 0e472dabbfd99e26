package main

// setTimerSlack does nothing: macOS coalesces timers by itself.
func setTimerSlack() {}
