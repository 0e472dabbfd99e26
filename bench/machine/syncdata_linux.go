package main

import (
	"os"
	"syscall"
)

// syncData makes the content of f durable.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
