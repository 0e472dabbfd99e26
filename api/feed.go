package api

import (
	"context"
	"sync"
	"time"

	"github.com/claimq/claimq/fsm"
)

const (
	// streamsMax bounds the streams of events that a node serves at once.
	streamsMax = 1_000
	// feedBytes bounds the packets that the feed keeps for streams that have not
	// sent them yet. A stream that is slower reads the trail itself.
	feedBytes = 4 << 20
)

// feed reads the end of this node's trail once for all streams. While there are
// streams, one goroutine looks at the trail whenever it has grown, but not more
// often than every lookInterval, and makes a packet of what is new. The newest
// packets are kept: each begins where the one before it ends.
type feed struct {
	server   *Server
	catchUps chan struct{} // an element per stream that reads the trail itself just now

	mu      sync.Mutex // guards what follows
	streams int
	packets []*packet
	size    int           // bytes of packets
	head    fsm.EventPos  // where the next packet begins
	news    chan struct{} // closed, and replaced, when head moves
	end     context.CancelFunc
	done    chan struct{} // closed when the goroutine has ended; nil before the first
}

func newFeed(s *Server) *feed {
	return &feed{server: s, catchUps: make(chan struct{}, catchUpsMax), news: make(chan struct{})}
}

// open counts a stream in, and starts the reading for the first one. ok is false
// if there are too many.
func (f *feed) open() (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams >= streamsMax {
		return false
	}
	f.streams++
	if f.streams > 1 {
		return true
	}
	ctx, cancel := context.WithCancel(f.server.serving)
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

// close counts a stream out; the last one ends the reading.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams--; f.streams == 0 {
		f.end()
	}
}

// count returns the number of open streams.
func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

// wait waits until nobody reads any more. The server must be draining.
func (f *feed) wait() {
	f.mu.Lock()
	done := f.done
	f.mu.Unlock()
	if done != nil {
		<-done
	}
}

// next returns the packet to send to a stream that has sent everything up to
// after. nil: there is none yet, and news is closed when there may be; or, if
// behind, none is kept any more, and the stream reads the trail itself.
func (f *feed) next(after fsm.EventPos) (p *packet, news <-chan struct{}, isBehind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.packets) - 1; i >= 0; i-- {
		if p := f.packets[i]; !behind(p.after, after) {
			if behind(p.next, after) {
				return p, nil, false
			}
			return nil, f.news, false
		}
	}
	return nil, f.news, behind(f.head, after)
}

// run reads until ctx ends.
func (f *feed) run(ctx context.Context) {
	f.restart()
	for pause := time.NewTimer(0); ; {
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		err := f.server.node.WaitEvent(ctx, f.place())
		pause.Reset(lookInterval)
		if err == nil {
			err = f.look(ctx)
		}
		if err != nil && ctx.Err() == nil {
			f.server.logger.Debug("the trail could not be read for streams; it is tried again", "error", err)
		}
	}
}

// place returns where the next packet begins.
func (f *feed) place() fsm.EventPos {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// look makes packets of what is new.
func (f *feed) look(ctx context.Context) error {
	for ctx.Err() == nil {
		read, err := f.server.readTrail(ctx, fsm.EventQuery{After: f.place()})
		if err != nil {
			return err
		}
		if read.gone {
			f.restart()
			return nil
		}
		f.add(read.packet)
		if !read.more {
			break
		}
	}
	return nil
}

// restart drops all packets and goes on at the newest event. Streams that have
// not got that far read the trail themselves.
func (f *feed) restart() {
	var newest fsm.EventPos
	_, err := f.server.node.ReadStale(f.server.serving, 0, func(m *fsm.Machine, _ fsm.Stamp) { newest = m.NewestEvent() })
	if err != nil {
		return // it goes on where it was
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.packets, f.size, f.head = nil, 0, newest
	f.tell()
}

// add appends a packet and drops the oldest ones past the bound.
func (f *feed) add(p *packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !behind(p.next, f.head) {
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
	f.head = p.next
	f.tell()
}

// tell wakes those that wait for a packet; mu is held.
func (f *feed) tell() {
	close(f.news)
	f.news = make(chan struct{})
}
