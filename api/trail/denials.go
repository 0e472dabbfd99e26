package trail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/fsm/event"
)

const (
	// denialsPerSecond bounds the denials per second that an audit file gets, and those that wait while it cannot be
	// written. Further ones are only counted.
	denialsPerSecond = 100
	// denialErrorBytes bounds the recorded reason.
	denialErrorBytes = 512
)

// Events of an audit file that are about denied requests.
const (
	lineDenied = "denied"
	lineUntold = "denials_left_out"
)

// Denial is a request with a known key that was answered with 401 or 403.
type Denial struct {
	At        time.Time
	Key       string // the key's name
	From      netip.Addr
	Call      string // the name of the call
	Status    int
	RequestID string
	Answer    []byte // the body of the answer
}

// denials are those waiting to be written to an audit file.
type denials struct {
	wake chan struct{} // has one element if there is something to write

	mu      sync.Mutex // guards what follows
	second  int64      // of Unix time
	taken   int        // in that second
	waiting []Denial
	leftOut int
}

// Denied records a denied request, described by made, unless there were too many in the same second. It does not wait
// for the disk.
func (a *Audit) Denied(now time.Time, made func() Denial) {
	d := &a.denials
	d.mu.Lock()
	defer d.mu.Unlock()
	if second := now.Unix(); second != d.second {
		d.second, d.taken = second, 0
	}
	if d.taken >= denialsPerSecond || len(d.waiting) >= denialsPerSecond {
		d.leftOut++
	} else {
		d.taken++
		d.waiting = append(d.waiting, made())
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// runDenials writes denials until ctx ends.
func (a *Audit) runDenials(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.denials.wake:
		}
		for a.writeDenials(time.Now(), false) {
			select { // more follows later: some were left out, or the disk failed
			case <-ctx.Done():
				return
			case <-a.denials.wake:
			case <-time.After(time.Second):
			}
		}
	}
}

// writeDenials writes what waits and, once their second is over or at the end, how many were left out. It reports
// whether anything remains to be written.
func (a *Audit) writeDenials(now time.Time, end bool) (more bool) {
	waiting, leftOut, more := a.denials.take(now, end)
	if len(waiting) == 0 && leftOut == 0 {
		return more
	}
	if err := a.appendDenials(waiting, leftOut, now); err != nil {
		a.denials.putBack(waiting, leftOut)
		return true // the goroutine of events logs the error
	}
	return more
}

// take takes what is to be written. more says that something is left for later.
func (d *denials) take(now time.Time, end bool) (waiting []Denial, leftOut int, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting, d.waiting = d.waiting, nil
	if end || now.Unix() != d.second {
		leftOut, d.leftOut = d.leftOut, 0
	}
	return waiting, leftOut, d.leftOut > 0
}

// putBack puts back what could not be written.
func (d *denials) putBack(waiting []Denial, leftOut int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	waiting = append(waiting, d.waiting...)
	kept := min(len(waiting), denialsPerSecond)
	d.waiting = waiting[:kept:kept]
	d.leftOut += leftOut + len(waiting) - kept
}

func (a *Audit) appendDenials(waiting []Denial, leftOut int, now time.Time) error {
	if _, err := a.place(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return errors.New("the audit file is closed")
	}
	var lines []byte
	for i := range waiting {
		lines = waiting[i].append(lines, a.at)
	}
	if leftOut > 0 {
		lines = appendNote(lines, a.at, now.UnixMilli(), lineUntold, strconv.Itoa(leftOut)+" more requests with known keys were denied")
	}
	if err := a.writeLocked(lines); err != nil {
		return err
	}
	return a.syncDueLocked()
}

// append appends the denial as a line of an audit file. at is the place of the file's last event.
func (d *Denial) append(b []byte, at event.Pos) []byte {
	var answer struct{ Code, Error string }
	_ = json.Unmarshal(d.Answer, &answer) // our own answer; otherwise the fields stay empty
	from := ""
	if d.From.IsValid() {
		from = d.From.String()
	}
	b = AppendEventHead(b, &event.Event{Pos: at, T: d.At.UnixMilli()})
	b = append(b, lineDenied+`","worker_id":null,"claim_token":null,"attempt":null,"message":`...)
	b = jsonout.String(b, jsonout.Cut(answer.Error, denialErrorBytes))
	b = jsonout.StringField(b, `,"key":`, d.Key)
	b = jsonout.StringField(b, `,"address":`, from)
	b = jsonout.StringField(b, `,"call":`, d.Call)
	b = jsonout.IntField(b, `,"status":`, int64(d.Status))
	b = jsonout.StringField(b, `,"code":`, answer.Code)
	b = jsonout.StringField(b, `,"request_id":`, d.RequestID)
	return append(b, '}', '\n')
}

// isDenial reports whether a line of an audit file is about denials. Such lines have the place of the event before.
func isDenial(line []byte) bool {
	return bytes.Contains(line, []byte(`,"event":"`+lineDenied+`",`)) || bytes.Contains(line, []byte(`,"event":"`+lineUntold+`",`))
}
