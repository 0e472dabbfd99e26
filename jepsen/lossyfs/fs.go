package lossyfs

import (
	"errors"
	"math/rand"
)

// FS is a mounted disk.
type FS struct{}

// Loss says what a power cut took.
type Loss struct {
	Pages   int // written pages that were lost
	Sizes   int // files whose new size was lost
	Names   int // changes of folders that were lost
	Survive int // unsynced pages that survived, if torn
}

var errNotYet = errors.New("lossyfs is not there yet")

// New mounts an empty disk on dir, which it makes if needed.
func New(dir string) (*FS, error) { return nil, errNotYet }

// Cut takes the power away. With a torn that is not nil, it decides which of
// the pages, sizes and names survive that were not synced. End the processes
// that use the disk right before: none may see that it fails and go on.
func (f *FS) Cut(torn *rand.Rand) (Loss, error) { return Loss{}, errNotYet }

// Restore gives the power back: the disk is what it was when it was synced.
// No process has files open in it.
func (f *FS) Restore() error { return errNotYet }

// Close unmounts the disk and forgets it.
func (f *FS) Close() error { return nil }
