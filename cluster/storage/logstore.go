package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// boltStore is the part of raft-boltdb that is used here. Tests substitute failing disks.
type boltStore interface {
	raft.StableStore
	Close() error
}

// openBolt opens the bbolt file of term and vote, which has passed checkVotes.
func openBolt(path string) (boltStore, error) {
	var bolt *raftboltdb.BoltStore
	err := callGuarded("open "+path, func() (err error) {
		bolt, err = raftboltdb.New(boltOptions(path))
		return err
	})
	switch {
	case err == nil:
		return bolt, nil
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: another process has %s open: stop it first", ErrDataDirInUse, path)
	case errors.Is(err, ErrCorruptLog):
		return nil, corruptLog(path, err.Error())
	default:
		return nil, storageError(filepath.Dir(path), "open "+path, err)
	}
}

// createBolt creates a file without term and vote at path atomically.
func createBolt(path string) error {
	tmp := path + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	err := callGuarded("create "+tmp, func() error {
		bolt, err := raftboltdb.New(boltOptions(tmp))
		if err != nil {
			return err
		}
		return bolt.Close()
	})
	if errors.Is(err, ErrCorruptLog) {
		// The disk does not return what was just written to it. Nothing is lost, because the
		// log is new.
		return errors.New(err.Error())
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func boltOptions(path string) raftboltdb.Options {
	return raftboltdb.Options{
		Path: path,
		BoltOptions: &bbolt.Options{
			// The list of free pages is reconstructed at open instead of being written with
			// each append.
			NoFreelistSync: true,
			FreelistType:   bbolt.FreelistMapType,
			// A file locked by another process is an error, not a hang.
			Timeout: boltFileLockTimeout,
		},
	}
}

// Log is Raft's log: raft-wal behind checksums, failStop and a cache of the newest entries. It
// implements raft.MonotonicLogStore and is safe for concurrent use.
//
// On disk, an entry's Extensions are followed by its CRC32C:
//
//	Extensions as given | CRC32C, 4 bytes, big-endian
//
// over index, term, type, time of append, data and extensions (entryChecksum). It is checked
// and removed whenever the entry is read from disk.
//
// Entries share Data and Extensions with the cache, so these must not be changed.
type Log struct {
	path    string // of raft-wal's folder, for errors
	disk    raft.LogStore
	guard   *failStop
	tail    *tailFile
	cache   *logCache
	observe func(time.Duration)

	unstored *unstored
	// leads reports whether the appending Raft leads; nil: unknown.
	leads atomic.Pointer[func() bool]
	// applied returns the index that the state reflects; nil: there is no state yet.
	applied atomic.Pointer[func() uint64]
	// snapshot returns the index of Raft's newest snapshot; nil: no Raft runs yet.
	snapshot atomic.Pointer[func() uint64]
	// replaced is true after a received snapshot was installed, until Raft deletes the log for it.
	replaced atomic.Bool
	// term returns Raft's term; takenOverIn is the term in which a snapshot was last installed,
	// 0 for none.
	term        func() (uint64, error)
	takenOverIn atomic.Uint64

	mu    sync.RWMutex // guards the rest
	first uint64       // lowest index, 0 = empty
	last  uint64       // highest index, 0 = empty
	sizes logSizes
}

func newLog(path string, disk raft.LogStore, tail *tailFile, guard *failStop, summary logSummary, cfg Config) *Log {
	observe := cfg.ObserveFsync
	if observe == nil {
		observe = func(time.Duration) {}
	}
	l := &Log{
		path:    path,
		disk:    disk,
		guard:   guard,
		tail:    tail,
		cache:   newLogCache(cfg.CacheBytesMax),
		observe: observe,
		first:   summary.first,
		last:    summary.last,
		sizes:   summary.sizes,
	}
	l.unstored = newUnstored(l.write)
	return l
}

// LedBy sets the function that reports whether the appending Raft leads. Before that, every
// append is on disk when it returns. leads may be called on any goroutine.
func (l *Log) LedBy(leads func() bool) { l.leads.Store(&leads) }

func (l *Log) leading() bool {
	leads := l.leads.Load()
	return leads != nil && (*leads)()
}

// AppliedTo sets the function that returns the index up to which the state reflects the log. It
// may be called on any goroutine.
func (l *Log) AppliedTo(applied func() uint64) { l.applied.Store(&applied) }

// AwaitStored waits until this node's disk has everything up to index. An error is from the
// write that failed; then it never will.
func (l *Log) AwaitStored(index uint64) error { return l.unstored.await(index) }

// Stored returns the lower of index and the last index on this node's disk.
func (l *Log) Stored(index uint64) uint64 { return l.unstored.stored(index) }

// SnapshotAt sets the function that returns the index of Raft's newest snapshot. It is called
// on the goroutine of Raft's main loop.
func (l *Log) SnapshotAt(index func() uint64) { l.snapshot.Store(&index) }

// IsMonotonic implements raft.MonotonicLogStore. Raft calls it after installing a received
// snapshot, and then deletes its whole log, because raft-wal cannot hold a gap, and below the
// snapshot there may be entries that were never committed. But it continues to rely on those
// above the snapshot, which may have been acknowledged (hashicorp/raft#697), so they are kept
// (DeleteRange).
func (l *Log) IsMonotonic() bool {
	l.replaced.Store(true)
	if term, err := l.term(); err == nil { // on an error the process ends
		l.takenOverIn.Store(term)
	}
	return true
}

// FirstIndex implements raft.LogStore.
func (l *Log) FirstIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.first, nil
}

// LastIndex implements raft.LogStore.
func (l *Log) LastIndex() (uint64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.last, nil
}

// GetLog implements raft.LogStore. It never returns a damaged entry, and one that is not on
// disk only while this node leads, because a follower vouches for what it has.
func (l *Log) GetLog(index uint64, log *raft.Log) error {
	if l.unstored.has(index) && !l.leading() {
		if err := l.unstored.await(index); err != nil {
			return err
		}
	}
	if l.cache.get(index, log) {
		return nil
	}
	if err := l.unstored.await(index); err != nil {
		return err
	}
	return l.guard.do("read the log", errorIs(raft.ErrLogNotFound), func() error {
		err := l.disk.GetLog(index, log)
		switch {
		case err == nil:
			err = unsealEntry(index, log)
		case errors.Is(err, raft.ErrLogNotFound):
			return raft.ErrLogNotFound
		}
		if err != nil {
			return corruptLog(l.path, fmt.Sprintf("entry %d: %v", index, err))
		}
		return nil
	})
}

// StoreLog implements raft.LogStore.
func (l *Log) StoreLog(log *raft.Log) error {
	return l.StoreLogs([]*raft.Log{log})
}

// StoreLogs implements raft.LogStore. When it returns nil, logs are on disk, except commands
// appended by a leader, which are only under way: what it concludes from a majority must wait
// for AwaitStored and Stored. logs must not be changed afterwards.
func (l *Log) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	l.replaced.Store(false)
	if err := l.checkFollows(logs[0].Index); err != nil {
		return err
	}
	if err := l.append(logs); err != nil {
		return err
	}
	l.cache.add(logs)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, log := range logs {
		l.noteLocked(log)
	}
	return nil
}

// checkFollows ends the process with an ErrOtherHistory for an entry whose index the state
// already reflects. Raft never sends such an entry to a sound node whose log has entries,
// because what is applied is in the log of every later leader. But it does not check that an
// empty log continues after the snapshot: a node with a state that no majority had would take
// the leader's log from its first entry on as the rest of its log, and apply what is above its
// snapshot to a different state.
//
// A leader whose snapshot was installed in this term knows that state. Its entry with such
// an index was sent before the snapshot and arrived late: it is refused, which changes
// nothing.
func (l *Log) checkFollows(index uint64) error {
	applied := l.applied.Load()
	if applied == nil || index > (*applied)() {
		return nil
	}
	term, err := l.term()
	if err != nil {
		return err
	}
	if takenOver := l.takenOverIn.Load(); takenOver != 0 && takenOver == term {
		return fmt.Errorf("entry %d was sent before the snapshot that this node has taken over since", index)
	}
	return l.guard.fail(fmt.Errorf("%w: %s: the leader sends entry %d, and the state of this node goes up to entry %d of another log: "+
		"its newest snapshot is of what no majority had, or its disk has lost the end of its log: %s",
		ErrOtherHistory, l.path, index, (*applied)(), RejoinAdvice(filepath.Dir(l.path))))
}

// append writes logs or, if they are a leader's commands, has them written. Raft acts on other
// entries as soon as they are appended, so those must be on disk.
func (l *Log) append(logs []*raft.Log) error {
	if l.leading() && !slices.ContainsFunc(logs, func(log *raft.Log) bool { return log.Type != raft.LogCommand }) {
		return l.unstored.add(logs)
	}
	if err := l.unstored.awaitAll(); err != nil {
		return err
	}
	return l.write(logs)
}

// write makes logs durable.
func (l *Log) write(logs []*raft.Log) error {
	sealed, newest := sealEntries(logs)
	startedAt := time.Now()
	return l.guard.do("append to the log", nil, func() error {
		if err := l.disk.StoreLogs(sealed); err != nil {
			return storageError(filepath.Dir(l.path), "append to "+l.path, err)
		}
		l.observe(time.Since(startedAt))
		if err := l.tail.set(newest); err != nil {
			return storageError(filepath.Dir(l.path), "write "+tailFileName, err)
		}
		return nil
	})
}

func (l *Log) noteLocked(log *raft.Log) {
	if l.first == 0 || log.Index < l.first {
		l.first = log.Index
	}
	l.last = max(l.last, log.Index)
	l.sizes.add(log.Index, int64(len(log.Data)+len(log.Extensions)))
}

// DeleteRange implements raft.LogStore: it deletes [lo, hi] at either end of the log. If the
// log is deleted for a snapshot, entries above the snapshot are kept: should they not follow
// it, the leader's next entries replace them, as in any log.
func (l *Log) DeleteRange(lo, hi uint64) error {
	kept, err := l.replacedBelow(lo, hi)
	if err != nil || kept < lo {
		return err
	}
	hi = kept
	if err := l.unstored.await(hi + 1); err != nil { // else the disk's log might become empty
		return err
	}
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if hi >= last {
		if err := l.lowerTail(lo); err != nil {
			return err
		}
	}
	// Readers must not find in the cache what is deleted from the disk.
	l.cache.deleteRange(lo, hi)
	first, last, err := l.deleteFromDisk(lo, hi)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = first
	if hi >= l.last { // else only an append moves the end, perhaps just now
		l.last = last
	}
	l.sizes.deleteRange(l.first, l.last)
	return nil
}

// deleteFromDisk deletes [lo, hi] from the disk and returns the bounds of what is left.
func (l *Log) deleteFromDisk(lo, hi uint64) (first, last uint64, err error) {
	err = l.guard.do("delete from the log", nil, func() error {
		if err := l.disk.DeleteRange(lo, hi); err != nil {
			return storageError(filepath.Dir(l.path), fmt.Sprintf("delete [%d, %d] from %s", lo, hi, l.path), err)
		}
		first, last, err = l.boundsOnDisk()
		if err == nil && (inRange(first, lo, hi) || inRange(last, lo, hi)) {
			err = fmt.Errorf("%w: %s: deleted [%d, %d], but [%d, %d] is left", ErrStorageFailed, l.path, lo, hi, first, last)
		}
		return err
	})
	return first, last, err
}

// replacedBelow returns hi or, if Raft deletes the whole log for a snapshot, the snapshot's
// index if that is lower. Other compactions keep the end of the log anyway.
func (l *Log) replacedBelow(lo, hi uint64) (uint64, error) {
	first, err := l.FirstIndex()
	if err != nil {
		return 0, err
	}
	last, err := l.LastIndex()
	if err != nil {
		return 0, err
	}
	snapshot := l.snapshot.Load()
	if lo > first || hi < last || !l.replaced.Swap(false) || snapshot == nil {
		return hi, nil
	}
	return min(hi, (*snapshot)()), nil
}

func (l *Log) boundsOnDisk() (first, last uint64, err error) {
	if first, err = l.disk.FirstIndex(); err != nil {
		return 0, 0, err
	}
	last, err = l.disk.LastIndex()
	return first, last, err
}

func inRange(index, lo, hi uint64) bool {
	return index != 0 && lo <= index && index <= hi
}

// lowerTail durably sets the log's tail to the entry before index, before that entry and the
// newer ones are deleted: otherwise a crash between the two would look like a loss.
func (l *Log) lowerTail(index uint64) error {
	var tail logTail // none: the log may become empty
	if index > 1 {
		var log raft.Log
		err := l.GetLog(index-1, &log)
		if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			return err
		}
		if err == nil {
			tail = logTail{index: log.Index, crc: entryChecksum(&log)}
		}
	}
	return l.guard.do("write "+tailFileName, nil, func() error {
		if err := l.tail.setDurably(tail); err != nil {
			return storageError(filepath.Dir(l.path), "write "+tailFileName, err)
		}
		return nil
	})
}

// LastCommand returns the largest index <= max with a command, which the state machine must
// reach before it reflects the log up to max, because no-ops, barriers and configurations never
// get there. It searches backwards from max, mostly in the cache; only elections and membership
// changes write such entries.
//
// Entries that are no longer in the log are in a snapshot that this node has taken or restored:
// if it finds one first there is nothing to wait for, and it returns 0. Above the log's end it
// cannot know and returns max.
func (l *Log) LastCommand(max uint64) uint64 {
	last, err := l.LastIndex()
	if err != nil || max > last || l.unstored.has(max) { // only commands are unstored
		return max
	}
	var log raft.Log
	for index := max; index > 0; index-- {
		err := l.GetLog(index, &log)
		if errors.Is(err, raft.ErrLogNotFound) {
			return 0
		}
		if err != nil {
			return max
		}
		if log.Type == raft.LogCommand {
			return index
		}
	}
	return 0
}

// BytesAfter returns the size of the entries above index, which a restart would replay after a
// snapshot at index. It may be too high by one entry and 64 KiB.
func (l *Log) BytesAfter(index uint64) int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.sizes.after(index)
}

func castagnoli() *crc32.Table {
	return crc32.MakeTable(crc32.Castagnoli)
}

// entryChecksum returns the CRC32C over
//
//	index 8 | term 8 | type 1 | appended at, s 8 | and ns 4 | len(data) 8 | data | extensions
//
// integers big-endian, extensions without the checksum itself.
func entryChecksum(log *raft.Log) uint32 {
	var head [37]byte
	binary.BigEndian.PutUint64(head[0:], log.Index)
	binary.BigEndian.PutUint64(head[8:], log.Term)
	head[16] = byte(log.Type)
	binary.BigEndian.PutUint64(head[17:], uint64(log.AppendedAt.Unix()))
	binary.BigEndian.PutUint32(head[25:], uint32(log.AppendedAt.Nanosecond()))
	binary.BigEndian.PutUint64(head[29:], uint64(len(log.Data)))
	crc := crc32.Checksum(head[:], castagnoli())
	crc = crc32.Update(crc, castagnoli(), log.Data)
	return crc32.Update(crc, castagnoli(), log.Extensions)
}

// sealEntries returns copies of logs in their form on disk, and where the log ends with them.
func sealEntries(logs []*raft.Log) (sealed []*raft.Log, newest logTail) {
	entries := make([]raft.Log, len(logs))
	sealed = make([]*raft.Log, len(logs))
	for i, log := range logs {
		crc := entryChecksum(log)
		entries[i] = *log
		entries[i].Extensions = binary.BigEndian.AppendUint32(append([]byte(nil), log.Extensions...), crc)
		sealed[i] = &entries[i]
		if log.Index >= newest.index {
			newest = logTail{index: log.Index, crc: crc}
		}
	}
	return sealed, newest
}

// unsealEntry checks an entry that was read from disk at index, and restores its original form.
func unsealEntry(index uint64, log *raft.Log) error {
	n := len(log.Extensions) - 4
	if n < 0 {
		return errors.New("no checksum")
	}
	crc := binary.BigEndian.Uint32(log.Extensions[n:])
	log.Extensions = log.Extensions[:n:n]
	if n == 0 {
		log.Extensions = nil
	}
	if entryChecksum(log) != crc {
		return errors.New("checksum mismatch")
	}
	if log.Index != index {
		return fmt.Errorf("holds entry %d", log.Index)
	}
	return nil
}
