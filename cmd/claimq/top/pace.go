package top

import "time"

// bytesPerSecond bounds how fast a Source reads one kind of answer. With 5,000 task types an answer has 2 MB, which a
// node need not build every second.
const bytesPerSecond = 256 << 10

// pace says when the next request of a kind is due.
type pace struct{ next time.Time }

func (p *pace) due(now time.Time) bool { return !now.Before(p.next) }

// took records the size of the answer to a request that began at sent.
func (p *pace) took(sent time.Time, size int) {
	p.next = sent.Add(time.Duration(size) * time.Second / bytesPerSecond)
}
