package top

import "time"

// bytesPerSecond is how much of one kind of answer a Source takes at most: with
// 5,000 task types an answer has 2 MB, which nobody has to make each second.
const bytesPerSecond = 256 << 10

// pace says when a kind of request is due again.
type pace struct{ next time.Time }

func (p *pace) due(now time.Time) bool { return !now.Before(p.next) }

// took notes the size of an answer to a request that began at sent.
func (p *pace) took(sent time.Time, size int) {
	p.next = sent.Add(time.Duration(size) * time.Second / bytesPerSecond)
}
