// Package storage manages a node's data folder: the node's identity, Raft's log, term and
// vote, snapshots, and the checks that keep all of it trustworthy. It knows nothing of a
// running node, of peers or of the contents of entries; package cluster opens it and hands
// its stores to Raft. Nothing else writes into the folder.
//
// A data folder ([Dir]) belongs to one node of one cluster and to one process at a time
// ([ErrDataDirInUse]). It contains
//
//	LOCK           locked while a process uses the folder; holds its pid
//	node.key       the node's key, written before anything else
//	identity.json  the node's identity
//	starts.json    the starts of other nodes that it was told of ([Starts])
//	raft.db        Raft's term and vote: a bbolt file
//	wal/           the log: raft-wal's segments and segments.json
//	raft.tail      how far the log must reach at least
//	snapshots/     the newest two snapshots
//
// docs/formats.md describes each of them byte for byte. Invariants:
//
//   - Everything that is relied on was read from the disk completely and is intact: each file and each entry has a
//     checksum. [Open] refuses damaged data ([ErrCorruptLog], [ErrCorruptSnapshot], [ErrCorruptIdentity]), and a node
//     whose folder it refuses has to join again as a new member. What was acknowledged is on the disks of a majority of
//     the others; a node that had lost a part of it, or its vote, could lead a majority that never saw it.
//   - An append has returned only when it is on disk, except for a leader's commands: those are under way, and
//     [Log.AwaitStored] and [Log.Stored] tell when they are on disk.
//   - A term is never on disk with the candidate of an earlier one.
//   - Nothing is retried: the first call that fails or hangs ends the process (Config.Fatal).
//   - Large files are written and removed in small steps, because the log's next sync waits for them.
//
// The files, in reading order:
//
//	storage.go                     opening, creating and closing the stores; errors
//	datadir.go, reserve.go         the folder and its lock; free space, and files that reserve inodes
//	identity.go, keyfile.go        identity.json and node.key
//	starts.go                      starts.json
//	logstore.go                    the log as Raft uses it
//	logcache.go, unstored.go       its newest entries, and those that a leader has not written yet
//	logtail.go, logsizes.go        raft.tail, and how large the log is after an index
//	walstore.go, walfs.go          raft-wal, and its segments as files
//	walmeta.go, waltorn.go         its list of segments, and repair after a crash
//	logcheck.go                    the check of all entries
//	stablestore.go, boltfile.go    term and vote, and the check of their file
//	snapshotstore.go               snapshots; snapshotheader.go has the header of their files
//	spool.go                       a backup on its way into the log
//	failstop.go                    the end of the process when a store fails or hangs
//	pagecache.go, syncdata_*.go    reading from the disk, not the system's cache; system calls
//	writeback.go, remover.go       writing and removing large files in steps
//	doctor.go                      checking a stopped node's folder
package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Errors of the data folder and its stores, wrapped with the file and advice.
var (
	// ErrDataDir is returned when the data folder cannot be used: it is not a folder,
	// cannot be written, or does not belong to claimq.
	ErrDataDir = errors.New("data folder unusable")
	// ErrDataDirInUse is returned when another process uses the data folder.
	ErrDataDirInUse = errors.New("data folder in use")
	// ErrNodeIDMismatch is returned when the data folder belongs to a node of another name.
	ErrNodeIDMismatch = errors.New("data folder belongs to another node")
	// ErrFormatMismatch is returned when the data folder is in another format.
	ErrFormatMismatch = errors.New("log kept in another format")
	// ErrClusterIDMismatch is returned when a data folder of one cluster is assigned to
	// another.
	ErrClusterIDMismatch = errors.New("data folder belongs to another cluster")
	// ErrCorruptIdentity is returned when identity.json is damaged.
	ErrCorruptIdentity = errors.New("identity damaged")
	// ErrCorruptLog is returned when the log, or Raft's term and vote, are
	// damaged.
	ErrCorruptLog = errors.New("log damaged")
	// ErrCorruptSnapshot is returned when the newest snapshot is damaged.
	ErrCorruptSnapshot = errors.New("snapshot damaged")
	// ErrOtherHistory is returned when this node's state comes from another log than the
	// cluster's.
	ErrOtherHistory = errors.New("the state is not of the cluster's log")
	// ErrDiskFull is returned when a write found no space.
	ErrDiskFull = errors.New("disk full")
	// ErrStorageFailed is returned for a write that failed or hung, and by every later
	// call.
	ErrStorageFailed = errors.New("storage failed")
	// ErrStorageClosed is returned by calls after Close.
	ErrStorageClosed = errors.New("storage closed")
)

const (
	logFileName       = "raft.db"
	snapshotsRetained = 2

	cacheBytesDefault   = 32 << 20
	slowCallMaxDefault  = 10 * time.Second
	boltFileLockTimeout = time.Second
)

// Config configures the stores of a data folder.
type Config struct {
	// Logger gets messages for operators. nil discards them.
	Logger hclog.Logger
	// Fatal is called once, with the first error of a write, the first call that took too
	// long, or the first damage that was read. In production it ends the process and never
	// returns, because nothing is ever retried. Required.
	Fatal func(error)
	// CacheBytesMax bounds the log cache, in bytes; 0 means 32 MiB. If it is too small,
	// entries are read back from disk for each follower and for applying them.
	CacheBytesMax int64
	// ObserveFsync, if not nil, is called with how long each append to the log took until
	// it was on disk. It must be fast.
	ObserveFsync func(time.Duration)
	// SegmentBytes is the size of raft-wal's segments; 0 means 16 MiB.
	SegmentBytes int
	// ReadFromDisk, if not nil, replaces the function of that name in tests.
	ReadFromDisk func(dir string) error
	// WrapLog and WrapStable, if not nil, wrap the disk's entries, and Raft's term and
	// vote, once the stores are open. Tests use them for slow and failing disks.
	WrapLog    func(disk raft.LogStore) raft.LogStore
	WrapStable func(disk raft.StableStore) raft.StableStore
	// SlowCallMax bounds a call into log or stable store while the process runs; 0 means 10
	// s. It is detected at most an eighth later.
	SlowCallMax time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Fatal == nil {
		return c, errors.New("open stores: no Fatal given")
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.ReadFromDisk == nil {
		c.ReadFromDisk = ReadFromDisk
	}
	if c.CacheBytesMax == 0 {
		c.CacheBytesMax = cacheBytesDefault
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = walSegmentBytes
	}
	if c.SlowCallMax == 0 {
		c.SlowCallMax = slowCallMaxDefault
	}
	return c, nil
}

// Stores holds all that Raft keeps on disk. Only one Raft may use it at a time; call Close
// after its end.
type Stores struct {
	Log       *Log
	Stable    raft.StableStore
	Snapshots *Snapshots

	guard *failStop
	bolt  boltStore // Raft's term and vote
	log   *walStore
	tail  *tailFile
}

// Open opens the stores of d, or creates them if d is new, after checking every byte
// on disk that Raft will rely on: ErrCorruptLog, ErrCorruptSnapshot. The caller must
// close them before d and after Raft.
func Open(d *Dir, cfg Config) (*Stores, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := createStores(d); err != nil {
		return nil, err
	}
	if err := cfg.ReadFromDisk(d.path); err != nil {
		return nil, err
	}
	guard := newFailStop(cfg.Fatal, cfg.SlowCallMax)
	s, err := openAll(d, cfg, guard)
	if err != nil {
		guard.close()
		return nil, err
	}
	return s, nil
}

func openAll(d *Dir, cfg Config, guard *failStop) (*Stores, error) {
	snapshots, err := openSnapshots(d.path, cfg.Logger.Named("snapshots"), guard)
	if err != nil {
		return nil, err
	}
	s, err := openOtherStores(d, cfg, guard, snapshots)
	if err != nil {
		snapshots.close()
		return nil, err
	}
	return s, nil
}

// openOtherStores opens the stores other than the snapshots. Closing them closes the snapshots, too.
func openOtherStores(d *Dir, cfg Config, guard *failStop, snapshots *Snapshots) (*Stores, error) {
	snapshotIndex, snapshotTerm, err := snapshots.verifyNewest()
	if err != nil {
		return nil, err
	}
	tail, err := openTail(d.path)
	if err != nil {
		return nil, err
	}
	s, summary, err := openLogAndVote(d.path, snapshotIndex, tail, cfg, guard)
	if err != nil {
		return nil, errors.Join(err, tail.close())
	}
	s.Snapshots = snapshots
	if err := s.dropReplaced(summary, snapshotIndex, snapshotTerm); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if cfg.WrapLog != nil {
		s.Log.disk = cfg.WrapLog(s.Log.disk)
	}
	if stable := s.Stable.(*stableStore); cfg.WrapStable != nil {
		stable.bolt = cfg.WrapStable(stable.bolt)
	}
	return s, nil
}

// openLogAndVote opens the log, and Raft's term and vote.
func openLogAndVote(dir string, snapshotIndex uint64, tail *tailFile, cfg Config, guard *failStop) (*Stores, logSummary, error) {
	votes := filepath.Join(dir, logFileName)
	if err := checkVotes(votes); err != nil {
		return nil, logSummary{}, err
	}
	bolt, err := openBolt(votes)
	if err != nil {
		return nil, logSummary{}, err
	}
	path := filepath.Join(dir, walDirName)
	w, summary, err := openCheckedWAL(path, cfg.SegmentBytes, snapshotIndex, tail.value, cfg.Logger.Named("wal"))
	if err != nil {
		return nil, logSummary{}, errors.Join(err, bolt.Close())
	}
	stable := &stableStore{bolt: bolt, guard: guard, path: votes}
	s := &Stores{Log: newLog(path, w, tail, guard, summary, cfg), Stable: stable, guard: guard, bolt: bolt, log: w, tail: tail}
	s.Log.term = stable.currentTerm
	return s, summary, nil
}

// dropReplaced deletes what the newest snapshot, whose last entry has snapshotTerm, has
// replaced: a log that ends before it, and one of another history up to it. Raft does so
// after installing a received snapshot, but a crash may have come in between. Without that,
// raft-wal would refuse to append after the snapshot to a log that ends before it, and
// entries of another history might be sent to other nodes.
//
// Entries above the snapshot with an earlier term than its own also belong to another
// history, and were never committed. While a node runs its leader replaces them; a cluster
// that is recovered from the folder would apply them.
func (s *Stores) dropReplaced(log logSummary, snapshotIndex, snapshotTerm uint64) error {
	if log.last == 0 {
		return nil
	}
	if log.last < snapshotIndex {
		return s.Log.DeleteRange(log.first, log.last)
	}
	above, ok, err := s.termAt(max(log.first, snapshotIndex+1))
	switch {
	case err != nil:
		return err
	case ok && above < snapshotTerm:
		return s.Log.DeleteRange(log.first, log.last)
	}
	at, ok, err := s.termAt(snapshotIndex)
	switch {
	case err != nil:
		return err
	case ok && at != snapshotTerm:
		return s.Log.DeleteRange(log.first, snapshotIndex)
	}
	return nil
}

// termAt returns the term of the log's entry at index. ok is false if the log lacks it.
func (s *Stores) termAt(index uint64) (term uint64, ok bool, err error) {
	var entry raft.Log
	err = s.Log.GetLog(index, &entry)
	if errors.Is(err, raft.ErrLogNotFound) {
		return 0, false, nil
	}
	return entry.Term, err == nil, err
}

// createStores creates the log of a new data folder, in steps that a crash may interrupt
// anywhere. The folder's identity records whether they were completed, so that a missing
// log is not taken for a new one.
func createStores(d *Dir) error {
	path := filepath.Join(d.path, logFileName)
	exists, err := fileExists(path)
	if err != nil {
		return DirError(d.path, err)
	}
	if d.Identity().StoresCreated {
		if !exists {
			return corruptLog(path, "the file is missing")
		}
		return nil
	}
	if !exists {
		if err := createTail(d.path); err != nil {
			return storageError(d.path, "create "+tailFileName, err)
		}
		if err := createBolt(path); err != nil {
			return storageError(d.path, "create "+logFileName, err)
		}
	}
	if err := createWAL(filepath.Join(d.path, walDirName)); err != nil {
		return storageError(d.path, "create "+walDirName, err)
	}
	return d.setStoresCreated()
}

// HasState reports whether Raft has ever been started on these stores: there is a term, an
// entry, or a snapshot. The rest of an interrupted bootstrap does not count; it is undone.
func (s *Stores) HasState() (bool, error) {
	has, err := raft.HasExistingState(s.Log, s.Stable, s.Snapshots)
	if err != nil {
		return false, fmt.Errorf("look for existing state: %w", err)
	}
	if !has {
		return false, nil
	}
	undone, err := s.undoBootstrap()
	return !undone, err
}

// bootstrapTerm is the term that a bootstrap writes before its configuration. No node ever
// leads in it, because the first election is for the next one.
const bootstrapTerm = 1

// undoBootstrap undoes a bootstrap of which only the term was written, and reports whether
// it did. With only that term, Raft would have no configuration and could no longer be
// bootstrapped; it cannot have voted or heard of a leader.
func (s *Stores) undoBootstrap() (bool, error) {
	term := []byte(currentTermKey)
	current, err := s.Stable.GetUint64(term)
	if isKeyNotFound(err) {
		return false, nil
	}
	if err != nil || current != bootstrapTerm {
		return false, err
	}
	last, err := s.Log.LastIndex()
	if err != nil || last > 0 {
		return false, err
	}
	snapshots, err := s.Snapshots.List()
	if err != nil || len(snapshots) > 0 {
		return false, err
	}
	return true, s.Stable.SetUint64(term, 0)
}

// Close closes the stores; later calls return ErrStorageClosed. Raft must have been shut
// down. A second Close does nothing.
func (s *Stores) Close() error {
	s.Log.unstored.close()
	if !s.guard.close() {
		return nil
	}
	s.Snapshots.close()
	return errors.Join(s.tail.close(), s.bolt.Close(), s.log.Close())
}

// corruptLog returns an ErrCorruptLog with what is wrong with the file at path, and advice.
func corruptLog(path, what string) error {
	return fmt.Errorf("%w: %s: %s: %s", ErrCorruptLog, path, what, RejoinAdvice(filepath.Dir(path)))
}

// corruptSnapshot returns an ErrCorruptSnapshot for the snapshot at path.
func corruptSnapshot(path, what string) error {
	dir := filepath.Dir(filepath.Dir(path))
	return fmt.Errorf("%w: %s: %s: %s", ErrCorruptSnapshot, path, what, RejoinAdvice(dir))
}

// RejoinAdvice returns the advice for a node whose disk has lost something.
func RejoinAdvice(dir string) string {
	return fmt.Sprintf("this node must not take part with what is left of its data; "+
		"check its disk, remove the node from the cluster (claimq cluster remove NODE_ID), "+
		"move %s away, and start it again with --join, as a new node", dir)
}

// storageError wraps an error of a write below the data folder dir with advice, as
// ErrDiskFull if there is no space.
func storageError(dir, step string, err error) error {
	switch {
	case noRoom(err):
		return fmt.Errorf("%w: %s: %w: %s, then start this node again; nothing acknowledged is lost",
			ErrDiskFull, step, err, roomAdvice(dir))
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return DirError(dir, fmt.Errorf("%s: %w", step, err))
	default:
		return fmt.Errorf("%w: %s: %w: check the disk of %s, then start this node again", ErrStorageFailed, step, err, dir)
	}
}
