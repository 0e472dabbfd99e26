package main

import (
	"os"
	"syscall"
)

// syncData puts what f holds on the disk.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
