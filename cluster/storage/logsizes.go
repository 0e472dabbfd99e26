package storage

import "sort"

// logSizeStep is the number of bytes of log between two marks of logSizes.
const logSizeStep = 64 << 10

// logSizes knows the approximate size of the entries after an index, from a mark every 64
// KiB of log: 16 bytes each, so a log of 1 GiB needs 256 KiB.
//
// Invariant: marks grow strictly in index and in total.
type logSizes struct {
	total int64 // bytes of all entries ever added, less those truncated
	marks []logSizeMark
}

// logSizeMark says that the entries up to and including index sum up to total.
type logSizeMark struct {
	index uint64
	total int64
}

// add counts the entry at index. One that replaces another is counted again, until the log
// is truncated below it.
func (s *logSizes) add(index uint64, size int64) {
	s.total += size
	n := len(s.marks)
	if n == 0 || index > s.marks[n-1].index && s.total-s.marks[n-1].total >= logSizeStep {
		s.marks = append(s.marks, logSizeMark{index, s.total})
	}
}

// after returns the bytes of entries above index, possibly too high by a step and an entry.
func (s *logSizes) after(index uint64) int64 {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].index > index })
	if i == 0 {
		return s.total - s.base()
	}
	return s.total - s.marks[i-1].total
}

// base returns the total before the oldest mark's own entries, assuming a step for them
// because nothing below is known.
func (s *logSizes) base() int64 {
	if len(s.marks) == 0 {
		return s.total
	}
	return max(0, s.marks[0].total-logSizeStep)
}

// deleteRange forgets what is below first or above last, the bounds of the log after a
// deletion; 0 and 0 if it is empty.
func (s *logSizes) deleteRange(first, last uint64) {
	end := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].index > last })
	if end < len(s.marks) {
		s.marks = s.marks[:end]
		s.total = 0
		if end > 0 {
			s.total = s.marks[end-1].total
		}
	}
	start := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].index >= first })
	// The mark below the first entry is where the counting begins.
	if start > 1 {
		s.marks = append([]logSizeMark(nil), s.marks[start-1:]...)
	}
}
