package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/internal/bytesize"
)

// Finding is the result of examining one part of a data folder.
type Finding struct {
	Part   string // "lock", "identity", "log", "snapshots", "fit", "disk"
	OK     bool
	Text   string // what is there, or what is wrong
	Advice string // what to do, "" if OK
}

// Examine checks the whole data folder at dir of a stopped node without changing anything. freeMin
// is the number of bytes that should be free on its disk, 0 = the default of disk_free_min. A
// folder that a running node has locked is not examined. An error means that dir is not a folder
// that could be examined.
func Examine(dir string, freeMin uint64) ([]Finding, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, not a folder", dir)
	}
	e := &examination{dir: dir}
	release := e.lock()
	defer release()
	if e.held {
		return e.findings, nil
	}
	if e.identity() {
		e.snapshots()
		e.log()
	}
	e.disk(freeMin)
	return e.findings, nil
}

// examination is a data folder being examined.
type examination struct {
	dir      string
	held     bool // by a running process
	id       Identity
	findings []Finding

	snapshotIndex uint64 // of the newest snapshot, 0 = none
	snapshotBad   bool
}

func (e *examination) ok(part, format string, args ...any) {
	e.findings = append(e.findings, Finding{Part: part, OK: true, Text: fmt.Sprintf(format, args...)})
}

func (e *examination) bad(part, advice, format string, args ...any) {
	e.findings = append(e.findings, Finding{Part: part, Text: fmt.Sprintf(format, args...), Advice: advice})
}

// rejoin returns the advice for a folder that has lost something.
func (e *examination) rejoin() string {
	return "do not start the node with it: " + RejoinAdvice(e.dir) +
		"; if it was the cluster's only node, start a new one and restore a backup (claimq snapshot restore)"
}

// lock holds the folder's lock against a node that is started meanwhile, without writing to it.
func (e *examination) lock() (release func()) {
	release = func() {}
	f, err := os.Open(filepath.Join(e.dir, lockFileName))
	if errors.Is(err, os.ErrNotExist) {
		e.ok("lock", "no node has used the folder yet")
		return release
	}
	if err != nil {
		e.held = true
		e.bad("lock", "run this as the user that runs the node", "%v", err)
		return release
	}
	release = func() { _ = f.Close() }
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		e.held = true
		e.bad("lock", "stop the node first, then run this again; what a running node sees is in 'claimq cluster status'",
			"a running claimq process (%s) uses the folder", lockOwner(f))
	case err != nil:
		e.held = true
		e.bad("lock", "check the disk", "%v", err)
	default:
		e.ok("lock", "no process uses the folder")
	}
	return release
}

// identity reports whether there is more to examine.
func (e *examination) identity() bool {
	id, ok, err := ReadIdentity(e.dir)
	switch {
	case errors.Is(err, ErrCorruptIdentity):
		e.bad("identity", e.rejoin(), "%s does not read back as it was written", IdentityFile)
		return false
	case err != nil:
		e.bad("identity", "check the disk, and that this user may read the folder", "%v", err)
		return false
	case !ok:
		if exists, err := fileExists(filepath.Join(e.dir, logFileName)); err != nil || exists {
			e.bad("identity", e.rejoin(), "%s is missing, but there is a log", IdentityFile)
			return false
		}
		e.ok("identity", "none: the folder is new, or is not a node's")
		return false
	}
	e.id = id
	if err := id.check(e.dir, id.NodeID); err != nil {
		e.bad("identity", "use the version of claimq that wrote it, or a later one", "%v", err)
		return false
	}
	if _, err := keyOf(e.dir, id); err != nil {
		advice := "check the disk, and that this user may read the folder"
		if errors.Is(err, ErrCorruptIdentity) {
			advice = e.rejoin()
		}
		e.bad("identity", advice, "%s is not the key of the node %s: %v", nodeKeyFileName, id.UUID, withoutAdvice(err))
		return false
	}
	clusterID := "cluster " + id.ClusterID
	if id.ClusterID == "" {
		clusterID = "it has not met a cluster yet"
	}
	e.ok("identity", "node %s (%s), %s", id.NodeID, id.UUID, clusterID)
	if !id.StoresCreated {
		e.ok("log", "none yet")
		return false
	}
	return true
}

// snapshots verifies every snapshot: both checksums, and that its state can be restored.
func (e *examination) snapshots() {
	s := &Snapshots{path: filepath.Join(e.dir, snapshotsFolder)}
	ids, err := s.all()
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		e.snapshotBad = true
		e.bad("snapshots", "check the disk, and that this user may read the folder", "%v", err)
		return
	}
	if len(ids) == 0 {
		e.ok("snapshots", "none")
		return
	}
	for i, id := range ids { // newest last
		key, _ := parseSnapshotID(id)
		e.snapshotIndex = key[1]
		index, err := s.verify(id)
		if err == nil {
			e.ok("snapshots", "%s: the state at index %d is as it was written", id, index)
			continue
		}
		advice := e.rejoin()
		if i < len(ids)-1 {
			advice = "the node does not need it: a newer one is there; but check the disk"
		} else {
			e.snapshotBad = true
		}
		e.bad("snapshots", advice, "%s: %v", id, err)
	}
}

// verify reads the whole snapshot and returns its index.
func (s *Snapshots) verify(id string) (index uint64, err error) {
	meta, err := s.readMeta(id)
	if err != nil {
		return 0, withoutAdvice(err)
	}
	text, err := os.ReadFile(filepath.Join(s.path, id, snapshotMetaFile))
	if err != nil {
		return 0, err
	}
	var sealed struct{ CRC []byte }
	if err := json.Unmarshal(text, &sealed); err != nil {
		return 0, err
	}
	f, err := os.Open(s.statePath(id))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	if _, err := io.Copy(sum, f); err != nil {
		return 0, err
	}
	if string(sum.Sum(nil)) != string(sealed.CRC) {
		return 0, errors.New(snapshotDataFile + ": checksum mismatch")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := readSnapshotHeader(f, meta); err != nil {
		return 0, err
	}
	m, err := fsm.ReadSnapshot(f)
	if err != nil {
		return 0, err
	}
	return m.Index(), nil
}

// withoutAdvice removes the advice from an error of the stores.
func withoutAdvice(err error) error {
	for _, kind := range []error{ErrCorruptSnapshot, ErrCorruptLog, ErrCorruptIdentity} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: it does not read back as it was written", kind)
		}
	}
	return err
}

// log verifies every entry of the log and Raft's stable values, and that the log continues where
// the newest snapshot ends.
func (e *examination) log() {
	tail, err := examineTail(e.dir)
	if err != nil {
		e.bad("log", e.rejoin(), "%s: %v", tailFileName, err)
		return
	}
	c := &logChecker{snapshotIndex: e.snapshotIndex, tail: tail}
	err = checkVotes(filepath.Join(e.dir, logFileName))
	if err == nil {
		err = c.examineWAL(filepath.Join(e.dir, walDirName))
	}
	if errors.Is(err, ErrCorruptLog) {
		err = fmt.Errorf("%s: it does not read back as it was written", logFileName)
	}
	if err != nil {
		e.bad("log", e.rejoin(), "%v", err)
		return
	}
	if c.summary.last == 0 {
		e.ok("log", "empty, with term and vote as they were written")
	} else {
		e.ok("log", "entries %d to %d are as they were written, and so are term and vote", c.summary.first, c.summary.last)
	}
	e.fit(c.summary)
}

// fit describes how log and snapshot fit together, which the check of the log has ensured.
func (e *examination) fit(log logSummary) {
	switch {
	case e.snapshotBad:
		e.bad("fit", e.rejoin(), "the newest snapshot is damaged, so the log behind it is of no use")
	case e.snapshotIndex == 0 && log.last == 0:
		e.ok("fit", "there is neither log nor snapshot: the node has not taken part yet")
	case e.snapshotIndex == 0:
		e.ok("fit", "there is no snapshot, and the log begins at entry %d", log.first)
	case log.last <= e.snapshotIndex:
		e.ok("fit", "the newest snapshot, at index %d, has all of the log", e.snapshotIndex)
	default:
		e.ok("fit", "the log goes on behind the newest snapshot, from index %d to %d", e.snapshotIndex, log.last)
	}
}

// examineTail reads the log's tail without opening it for writing.
func examineTail(dir string) (logTail, error) {
	f, err := os.Open(filepath.Join(dir, tailFileName))
	if err != nil {
		return logTail{}, err
	}
	defer f.Close()
	return readTail(f)
}

func (e *examination) disk(freeMin uint64) {
	free, size, err := FreeSpace(e.dir)
	switch {
	case err != nil:
		e.bad("disk", "check the disk", "%v", err)
	case free < FreeMin(freeMin, size):
		e.bad("disk", "make room: below that the node refuses to take tasks, and with no space at all it stops",
			"%s of %s are free, less than the %s that should be", sizeText(free), sizeText(size), sizeText(FreeMin(freeMin, size)))
	default:
		e.ok("disk", "%s of %s are free", sizeText(free), sizeText(size))
	}
}

func sizeText(n uint64) string { return bytesize.Text(int64(min(n, math.MaxInt64))) }
