package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/claimq/claimq/fsm/record"
)

// The format of a backup (docs/formats.md): a header, a whole snapshot, and a checksum of
// everything.
//
//	0              8         9        13       13+length   17+length
//	+--------------+---------+--------+--------+-----------+----------+--------+---------+
//	| "CLAIMQBK"   | version | length | header | CRC32C of | snapshot | its    | SHA-256 |
//	|              |         |        |        | all that  |          | length | of all  |
//	+--------------+---------+--------+--------+-----------+----------+--------+---------+
//
// Both lengths and the CRC are little-endian, of 4, 8 and 4 bytes.
const (
	BackupMagic = "CLAIMQBK"

	backupHead = len(BackupMagic) + 1 + 4 // magic, version, length of the header
	backupTail = 8 + sha256.Size          // length of the snapshot, checksum
	// backupInfoMax bounds the header.
	backupInfoMax = 64 << 10
)

// BackupInfo is the header of a backup.
type BackupInfo struct {
	ClusterID string // of the cluster that was backed up
	Index     uint64 // index in the log that the state reflects
	Level     uint32 // the cluster's feature level
	CreatedAt int64  // milliseconds since the Unix epoch, by the node that wrote it
	Version   string // of that node's binary
}

// Backup is a captured state to be written as a backup.
type Backup struct {
	Info     BackupInfo
	snapshot *Snapshot
}

// NewBackup makes a backup of s and takes over s. It sets Index and Level of info. The
// backup does not contain the page's secret.
func NewBackup(s *Snapshot, info BackupInfo) *Backup {
	s.of.Header.PageSecret = nil
	info.Index, info.Level = s.of.Header.Index, s.of.Header.Level
	return &Backup{Info: info, snapshot: s}
}

// Release ends the capture, as Snapshot.Release does.
func (b *Backup) Release() { b.snapshot.Release() }

// WriteTo writes the backup in the format of docs/formats.md. In addition to the capture it
// holds one chunk of the snapshot in memory. It wraps errors of w.
func (b *Backup) WriteTo(w io.Writer) (int64, error) {
	sum := &summer{w: w, sum: sha256.New()}
	if _, err := sum.Write(AppendBackupHead(nil, &b.Info)); err != nil {
		return sum.written, fmt.Errorf("write backup: %w", err)
	}
	length, err := b.snapshot.WriteTo(sum)
	if err != nil {
		return sum.written, fmt.Errorf("write backup: %w", err)
	}
	if _, err = sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(length))); err == nil {
		_, err = sum.Write(sum.sum.Sum(nil))
	}
	if err != nil {
		return sum.written, fmt.Errorf("write backup: %w", err)
	}
	return sum.written, nil
}

// summer writes through and computes a checksum.
type summer struct {
	w       io.Writer
	sum     hash.Hash
	written int64
}

func (s *summer) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.written += int64(n)
	_, _ = s.sum.Write(b[:n]) // a hash never fails
	return n, err
}

// AppendBackupHead appends what precedes the snapshot.
func AppendBackupHead(b []byte, info *BackupInfo) []byte {
	b = append(append(b, BackupMagic...), record.Format, 0, 0, 0, 0)
	f := record.To(b)
	info.code(&f)
	b = f.Out
	binary.LittleEndian.PutUint32(b[backupHead-4:], uint32(len(b)-backupHead))
	return binary.LittleEndian.AppendUint32(b, ChunkSum(b))
}

func (info *BackupInfo) code(f *record.Fields) {
	f.Text(1, &info.ClusterID)
	f.Uint(2, &info.Index)
	f.Uint32(3, &info.Level)
	f.Int(4, &info.CreatedAt)
	f.Text(5, &info.Version)
}

// ReadBackupInfo reads and verifies only the header of the backup of size bytes in r. start
// is where its snapshot begins. Errors, wrapped: record.ErrCorrupt, record.ErrUnknown,
// record.ErrDevelopment, and errors of r.
func ReadBackupInfo(r io.ReaderAt, size int64) (info BackupInfo, start int64, err error) {
	head := make([]byte, backupHead)
	if n, err := r.ReadAt(head, 0); n < len(head) {
		if err != nil && !errors.Is(err, io.EOF) {
			return info, 0, err
		}
		if !bytes.HasPrefix([]byte(BackupMagic), head[:min(n, len(BackupMagic))]) {
			return info, 0, notABackup(head[:n])
		}
		return info, 0, fmt.Errorf("%w: it is cut off: %d bytes are no backup", record.ErrCorrupt, size)
	}
	if !bytes.HasPrefix(head, []byte(BackupMagic)) {
		return info, 0, notABackup(head)
	}
	if err := record.CheckFormat("a backup", head[len(BackupMagic)]); err != nil {
		return info, 0, err
	}
	length := int64(binary.LittleEndian.Uint32(head[backupHead-4:]))
	start = int64(backupHead) + length + ChunkTail
	if length > backupInfoMax || start+int64(backupTail) > size {
		return info, 0, fmt.Errorf("%w: it is cut off, or its header is damaged", record.ErrCorrupt)
	}
	whole := make([]byte, start)
	if _, err := r.ReadAt(whole, 0); err != nil {
		return info, 0, err
	}
	body := whole[:start-ChunkTail]
	if ChunkSum(body) != binary.LittleEndian.Uint32(whole[len(body):]) {
		return info, 0, fmt.Errorf("%w: the checksum of its header differs", record.ErrCorrupt)
	}
	fields := record.From(body[backupHead:], nil)
	info.code(&fields)
	if err := fields.End(); err != nil {
		return info, 0, fmt.Errorf("its header: %w", err)
	}
	return info, start, nil
}

// notABackup describes a file that begins with head.
func notABackup(head []byte) error {
	if bytes.HasPrefix(head, []byte(Magic)) || bytes.HasPrefix(head, []byte("cqsnap1\n")) {
		return fmt.Errorf("%w: it is a snapshot out of a node's data folder, not a backup: 'claimq snapshot save' writes backups", record.ErrCorrupt)
	}
	return fmt.Errorf("%w: it is not a backup of claimq's", record.ErrCorrupt)
}

// OpenBackup verifies the checksum of the backup of size bytes in r and returns a reader of
// its snapshot. Errors: those of ReadBackupInfo.
func OpenBackup(r io.ReaderAt, size int64) (info BackupInfo, snapshot io.Reader, err error) {
	info, start, err := checkBackup(r, size)
	return info, io.NewSectionReader(r, start, size-start-int64(backupTail)), err
}

// CheckBackup verifies the checksum of the backup of size bytes in r without building its
// state. Errors: those of OpenBackup.
func CheckBackup(r io.ReaderAt, size int64) (BackupInfo, error) {
	info, _, err := checkBackup(r, size)
	if err != nil {
		return info, fmt.Errorf("check backup: %w", err)
	}
	return info, nil
}

// checkBackup is CheckBackup that also returns where the snapshot begins.
func checkBackup(r io.ReaderAt, size int64) (info BackupInfo, start int64, err error) {
	if info, start, err = ReadBackupInfo(r, size); err != nil {
		return info, start, err
	}
	return info, start, checkBackupSum(r, start, size)
}

// checkBackupSum verifies the end of a backup whose snapshot begins at start.
func checkBackupSum(r io.ReaderAt, start, size int64) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r, 0, size-sha256.Size)); err != nil {
		return err
	}
	var tail [backupTail]byte
	if _, err := r.ReadAt(tail[:], size-int64(backupTail)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	length := size - start - int64(backupTail)
	if got := binary.LittleEndian.Uint64(tail[:]); got != uint64(length) {
		return fmt.Errorf("%w: it is cut off or damaged: it has %d bytes of state, and names another length", record.ErrCorrupt, length)
	}
	if !bytes.Equal(sum.Sum(nil), tail[8:]) {
		return fmt.Errorf("%w: its checksum differs", record.ErrCorrupt)
	}
	return nil
}
