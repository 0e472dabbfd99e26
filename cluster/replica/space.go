package replica

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/internal/bytesize"
	"github.com/claimq/claimq/internal/pause"
	"github.com/claimq/claimq/nodes"
)

// diskCheckInterval is the interval at which a node measures the free space of its disk.
const diskCheckInterval = 250 * time.Millisecond

// SpaceConfig connects a Space to its node.
type SpaceConfig struct {
	MemoryLimit int64  // maximum size of the state, in bytes
	DiskFreeMin uint64 // 0: derived from the disk's size
	// Held returns the size of the state.
	Held func() Held
	// VotersLow reports whether there may be no majority without the voters whose disks are
	// low.
	VotersLow func() bool
	Logger    hclog.Logger
}

// Space measures what a node has left of its memory limit and of the disk of its data folder:
// which commands are refused for lack of it, what is evicted and forgotten before that, and
// whether a snapshot fits. It proposes nothing; it is given the measurements, and knows no node
// and no Raft. Its methods are safe for concurrent use.
type Space struct {
	Disk Disk
	cfg  SpaceConfig
}

// NewSpace returns a Space whose disk has not been measured yet.
func NewSpace(cfg SpaceConfig) *Space { return &Space{cfg: cfg} }

// Admit returns a *nodes.Overload if there is no room in memory or on disk for what the command
// adds to the state.
func (s *Space) Admit(cmd command.Command) error {
	switch growthOf(cmd) {
	case growsByTasks:
		return s.Full()
	case growsBySteps:
		return s.strained()
	}
	return nil
}

// Full returns a *nodes.Overload if a bound of memory or disk is reached. It is only for
// commands that add tasks, because claims and settles make room.
func (s *Space) Full() error {
	if err := s.memoryFull(false); err != nil {
		return err
	}
	if err := s.Disk.full(false); err != nil {
		return err
	}
	if s.cfg.VotersLow() {
		return &nodes.Overload{Bound: nodes.BoundDisk, Text: "so many voters' disks are low that no majority may be left"}
	}
	return nil
}

// strained is Full for commands that may go on for longer.
func (s *Space) strained() error {
	if err := s.memoryFull(true); err != nil {
		return err
	}
	return s.Disk.full(true)
}

// SnapshotFits returns an error if the disk may have no room for a snapshot, because a full
// disk would stop the log, and so the node.
func (s *Space) SnapshotFits() error { return s.Disk.fits(s.cfg.Held().All) }

// Left returns the node's report of its space.
func (s *Space) Left() *nodes.NodeRoom {
	r := &nodes.NodeRoom{State: s.cfg.Held().All, StateMax: s.cfg.MemoryLimit}
	if free, _, mark, ok := s.Disk.Bytes(); ok {
		r.DiskFree, r.DiskMin = int64(free), int64(mark)
	}
	return r
}

// Watch measures the disk repeatedly until ctx ends. bytes and inodes return the free and the
// total number.
func (s *Space) Watch(ctx context.Context, bytes, inodes func() (free, size uint64, err error)) {
	for ok := true; ok; ok = pause.For(ctx, pause.Beat(diskCheckInterval)) {
		s.lookAtInodes(inodes)
		free, size, err := bytes()
		if err != nil {
			continue // the stores report it, if it matters
		}
		switch low, changed := s.Disk.note(free, size, s.cfg.DiskFreeMin); {
		case changed && low:
			s.cfg.Logger.Warn("the data folder's disk is low: submits are refused while this node leads; free some space, but nothing in the folder",
				"free", bytesize.Text(int64(free)), "disk_free_min", bytesize.Text(int64(s.Disk.mark.Load())))
		case changed:
			s.cfg.Logger.Info("the data folder's disk has room again", "free", bytesize.Text(int64(free)), "disk_free_min", bytesize.Text(int64(s.Disk.mark.Load())))
		}
	}
}

func (s *Space) lookAtInodes(ask func() (free, size uint64, err error)) {
	free, size, err := ask()
	if err != nil {
		return
	}
	switch low, changed := s.Disk.noteInodes(free, size); {
	case changed && low:
		s.cfg.Logger.Warn("the data folder's file system runs out of inodes: submits are refused while this node leads; remove files, but none in the folder",
			"free", free, "free_min", s.Disk.inodesMark.Load())
	case changed:
		s.cfg.Logger.Info("the data folder's file system has inodes again", "free", free, "free_min", s.Disk.inodesMark.Load())
	}
}
