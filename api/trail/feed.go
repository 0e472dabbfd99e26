package trail

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/fsm"
	"github.com/claimq/claimq/fsm/event"
)

const (
	// StreamsMax bounds the streams of events that a node serves at once.
	StreamsMax = 1_000
	// feedBytes bounds the packets kept for streams that have not sent them yet. Slower streams read the trail
	// themselves.
	feedBytes = 4 << 20
)

// Feed reads the end of this node's trail once for all streams. While there are streams, one goroutine reads the
// trail whenever it has grown, at most once every LookInterval, and makes packets of new events. The newest packets
// are kept; each begins where the previous one ends.
type Feed struct {
	node     Source
	logger   hclog.Logger
	serving  context.Context // ends when the server drains
	CatchUps chan struct{}   // an element for each stream that is reading the trail itself

	mu      sync.Mutex // guards what follows
	streams int
	packets []*Packet
	size    int           // bytes of packets
	head    event.Pos     // where the next packet begins
	news    chan struct{} // closed and replaced when head moves
	end     context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended; nil before the first one
}

// NewFeed returns a feed of the node's trail without streams. It stops reading when serving ends.
func NewFeed(serving context.Context, node Source, logger hclog.Logger) *Feed {
	return &Feed{serving: serving, node: node, logger: logger, CatchUps: make(chan struct{}, catchUpsMax), news: make(chan struct{})}
}

// Open counts a stream, and starts reading for the first one. ok is false if there are too many.
func (f *Feed) Open() (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams >= StreamsMax {
		return false
	}
	f.streams++
	if f.streams > 1 {
		return true
	}
	ctx, cancel := context.WithCancel(f.serving)
	last, done := f.done, make(chan struct{})
	f.end, f.done = cancel, done
	go func() {
		defer close(done)
		if last != nil {
			<-last
		}
		f.run(ctx)
	}()
	return true
}

// Close uncounts a stream; the last one stops the reading.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams--; f.streams == 0 {
		f.end()
	}
}

// Count returns the number of open streams.
func (f *Feed) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

// Wait waits until the reading has stopped. The server must be draining.
func (f *Feed) Wait() {
	f.mu.Lock()
	done := f.done
	f.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Next returns the packet for a stream that has sent everything up to after. If p is nil, either there is no new
// packet yet, and news is closed when there may be one; or, if isBehind, the packet is no longer kept and the stream
// must read the trail itself.
func (f *Feed) Next(after event.Pos) (p *Packet, news <-chan struct{}, isBehind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.packets) - 1; i >= 0; i-- {
		if p := f.packets[i]; !After(p.After, after) {
			if After(p.Next, after) {
				return p, nil, false
			}
			return nil, f.news, false
		}
	}
	return nil, f.news, After(f.head, after)
}

// run reads until ctx ends.
func (f *Feed) run(ctx context.Context) {
	f.restart()
	for pause := time.NewTimer(0); ; {
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		err := f.node.WaitEvent(ctx, f.Place())
		pause.Reset(LookInterval)
		if err == nil {
			err = f.look(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.logger.Debug("the trail could not be read for streams; it is tried again", "error", err)
		}
	}
}

// Place returns where the next packet begins.
func (f *Feed) Place() event.Pos {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// look makes packets of new events.
func (f *Feed) look(ctx context.Context) error {
	for ctx.Err() == nil {
		read, err := Read(ctx, f.node, event.Query{After: f.Place()})
		if err != nil {
			return err
		}
		if read.Gone {
			f.restart()
			return nil
		}
		f.add(read.Packet)
		if !read.more {
			break
		}
	}
	return nil
}

// restart drops all packets and continues at the newest event. Streams that are behind read the trail themselves.
func (f *Feed) restart() {
	var newest event.Pos
	_, err := f.node.ReadStale(f.serving, 0, func(m *fsm.Machine, _ fsm.Stamp) { newest = m.NewestEvent() })
	if err != nil {
		return // it continues where it was
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.packets, f.size, f.head = nil, 0, newest
	f.tell()
}

// add appends a packet and drops the oldest ones beyond the bound.
func (f *Feed) add(p *Packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !After(p.Next, f.head) {
		return
	}
	f.packets = append(f.packets, p)
	f.size += p.bytes()
	drop := 0
	for ; f.size > feedBytes && drop < len(f.packets)-1; drop++ {
		f.size -= f.packets[drop].bytes()
		f.packets[drop] = nil
	}
	f.packets = f.packets[drop:]
	f.head = p.Next
	f.tell()
}

// tell wakes the streams that wait for a packet; the caller holds mu.
func (f *Feed) tell() {
	close(f.news)
	f.news = make(chan struct{})
}

const (
	// catchUpsMax bounds the streams that read the trail themselves at the same time, because they began at an old
	// place or were slow.
	catchUpsMax = 4
)
