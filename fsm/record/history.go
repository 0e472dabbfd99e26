package record

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// HistoryMinutes is the number of minutes that a history goes back. Of the minutes before, it keeps only
	// the last one with a change, because that says what held when the first of them began.
	HistoryMinutes = 360
	// HistoriesMax bounds the histories: one of all tasks, and those of 100 types.
	HistoriesMax = 1 + 100
	// HistorySpans is the number of durations that are counted: the waits of tasks for a claim, and
	// the times from a claim to the completion.
	HistorySpans = 2
	// HistoryBuckets is the number of buckets for each of them, latency.Buckets.
	HistoryBuckets = 120
	// MSInMinute is the number of milliseconds of a minute.
	MSInMinute = 60_000
)

// History has, for each of the last minutes, how many tasks of a type, or of all types, were
// submitted, completed and failed, how long they took, and what was pending and claimed at its
// end. Minutes without a change are left out.
type History struct {
	Type    string   // "": of all tasks
	Since   int64    // the first minute that it has seen
	Minutes []Minute // those that have ended, ascending; elements never change
	Open    Minute   // the one under way: its counts alone, without the fields about its end
	// Times counts the durations of the minute under way, by bucket.
	Times [HistorySpans][HistoryBuckets]uint64
}

// Minute is one minute of a history.
type Minute struct {
	At int64 // in minutes, by T

	Submitted, Completed, Failed uint32 // in it
	// Times has the buckets of the median and the 99th percentile; 0: there were none.
	Times [HistorySpans]Quantiles

	// At its end.
	Pending, Claimed uint32
	OldestAt         int64 // when the oldest pending task was submitted, by T; 0: none is pending
}

// Quantiles are the median and the 99th percentile of durations, as buckets of package latency.
type Quantiles struct{ P50, P99 uint8 }

// OldestAge returns the age in milliseconds of the task that was the oldest pending one at the end
// of the minute, or at to if that is earlier; 0 if none was pending.
func (m *Minute) OldestAge(to int64) int64 {
	if m.OldestAt == 0 {
		return 0
	}
	return max(min((m.At+1)*MSInMinute, to)-m.OldestAt, 0)
}

// Unchanged returns the minute at, which is after m, if nothing has changed since m.
func (m *Minute) Unchanged(at int64) Minute {
	return Minute{At: at, Pending: m.Pending, Claimed: m.Claimed, OldestAt: m.OldestAt}
}

// BytesOfHistory estimates the memory of a history.
func BytesOfHistory(h *History) int64 {
	return int64(historyBytes + len(h.Type) + len(h.Minutes)*minuteBytes)
}

// AppendHistory appends the record of the history.
func AppendHistory(b []byte, h *History) []byte {
	f := To(b)
	f.history(h)
	return f.Out
}

// ReadHistory reads the record.
func ReadHistory(f *Fields) *History {
	h := &History{}
	f.history(h)
	_ = f.End() // the caller checks f.Err
	return h
}

func (f *Fields) history(h *History) {
	f.interned(1, &h.Type)
	f.Int(2, &h.Since)
	for e := Each(); Next(&e, f, 3, &h.Minutes, HistoryMinutes+1); {
		f.minute(&h.Minutes[e.At])
	}
	if m, ok := f.Message(4, true); ok {
		f.minute(&h.Open)
		f.EndMessage(m)
	}
	for span := range h.Times {
		f.buckets(protowire.Number(5+span), &h.Times[span])
	}
}

func (f *Fields) minute(m *Minute) {
	f.Int(1, &m.At)
	f.Uint32(2, &m.Submitted)
	f.Uint32(3, &m.Completed)
	f.Uint32(4, &m.Failed)
	f.Uint32(5, &m.Pending)
	f.Uint32(6, &m.Claimed)
	f.Int(7, &m.OldestAt)
	for span := range m.Times {
		f.bucket(protowire.Number(8+2*span), &m.Times[span].P50)
		f.bucket(protowire.Number(9+2*span), &m.Times[span].P99)
	}
}

// bucket reads or writes field num, a bucket of package latency.
func (f *Fields) bucket(num protowire.Number, v *uint8) {
	wide := uint32(*v)
	if f.Uint32(num, &wide); f.Reading {
		if *v = uint8(wide); wide > HistoryBuckets {
			f.Fail(fmt.Sprintf("%d is no bucket", wide))
		}
	}
}

// bucketCount is a bucket with its count.
type bucketCount struct {
	bucket uint8
	count  uint64
}

// buckets reads or writes the repeated field num: the buckets that have a count, ascending.
func (f *Fields) buckets(num protowire.Number, counts *[HistoryBuckets]uint64) {
	var list []bucketCount
	if !f.Reading {
		for i, n := range counts {
			if n > 0 {
				list = append(list, bucketCount{uint8(i + 1), n})
			}
		}
	}
	last := uint8(0)
	for e := Each(); Next(&e, f, num, &list, HistoryBuckets); {
		c := &list[e.At]
		f.bucket(1, &c.bucket)
		f.Uint(2, &c.count)
		if f.Reading && f.Err == nil {
			if c.bucket <= last || c.count == 0 {
				f.Fail("buckets that do not ascend, or are empty")
				continue
			}
			counts[c.bucket-1] = c.count
		}
		last = c.bucket
	}
}

// Problem returns what is wrong with a history that was read, or "".
func (h *History) Problem() string {
	last := int64(-1)
	for i := range h.Minutes {
		if at := h.Minutes[i].At; at <= last || at >= h.Open.At || at < h.Since {
			return fmt.Sprintf("minute %d is out of order", at)
		}
		last = h.Minutes[i].At
	}
	switch o := &h.Open; {
	case h.Since > o.At:
		return "it begins after the minute under way"
	case o.Pending != 0 || o.Claimed != 0 || o.OldestAt != 0 || o.Times != [HistorySpans]Quantiles{}:
		return "the minute under way has an end"
	}
	return ""
}
