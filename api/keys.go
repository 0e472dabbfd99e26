package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

// keyList answers GET /api/keys: the keys of this node, by name, and when each was last used here. Hashes are not
// shown.
func (s *Server) keyList(r *request) {
	after, limit, bad := parseKeyList(r)
	if bad != nil {
		r.refuse(bad)
		return
	}
	if !r.takeTurn() {
		return
	}
	var keys []*door.Caller
	if t := s.core.keys.Load(); t != nil {
		from, found := slices.BinarySearchFunc(t.Sorted, after, func(k *door.Caller, name string) int { return strings.Compare(k.Name, name) })
		if found {
			from++
		}
		keys = t.Sorted[from:]
	}
	more := len(keys) > limit
	if more {
		keys = keys[:limit]
	}
	b := jsonout.StringField(r.buffer(), `{"success":true,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.TimeField(b, `,"since":`, s.core.begun.UnixMilli())
	b = jsonout.List(b, `,"keys":`, len(keys), func(b []byte, i int) []byte { return appendKey(b, keys[i]) })
	next := ""
	if more {
		next = keys[limit-1].Name
	}
	b = jsonout.StringOrNull(b, `,"next":`, next)
	r.send(fasthttp.StatusOK, append(b, '}'))
}

// parseKeyList reads the query of GET /api/keys.
func parseKeyList(r *request) (after string, limit int, bad *refuse.Refusal) {
	limit = wire.PageDefault
	bad = r.readParams(params{
		"after": textParam(&after, "the name of a key, 1 to 64 of A-Z a-z 0-9 _ . -", door.KeyNamePattern.MatchString),
		"limit": countParam(&limit, keyPageMax),
	})
	return after, limit, bad
}

// keyPageMax bounds the keys of an answer, so that it stays below 8 MiB.
const keyPageMax = 1_000

// appendKey appends a key as operators see it.
func appendKey(b []byte, k *door.Caller) []byte {
	b = jsonout.StringField(b, `{"name":`, k.Name)
	b = jsonout.Strings(b, `,"roles":`, k.Roles.Names())
	b = jsonout.Strings(b, `,"task_types":`, k.Types)
	b = jsonout.IntField(b, `,"rate_limit_per_minute":`, k.Rate())
	b = jsonout.Moment(b, `,"expires_at":`, k.Expires)
	addresses := make([]string, len(k.Addresses))
	for i, p := range k.Addresses {
		if addresses[i] = p.String(); p.IsSingleIP() {
			addresses[i] = p.Addr().String()
		}
	}
	b = jsonout.Strings(b, `,"addresses":`, addresses)
	last := k.Last.Load()
	if last == nil {
		return append(b, `,"last_used_at":null,"last_used_from":null}`...)
	}
	b = jsonout.TimeField(b, `,"last_used_at":`, last.At.UnixMilli())
	b = append(b, `,"last_used_from":`...)
	if !last.From.IsValid() {
		return append(b, "null}"...)
	}
	return append(jsonout.String(b, last.From.String()), '}')
}

// errNoKeys is returned by readKeys if a server that has keys would have none afterwards, because that would open it
// to everyone.
var errNoKeys = errors.New("there is no key any more, which would open the server to everybody: keep one, or restart it without keys")

// readKeys reads the keys again, and returns their number and whether anything changed. On an error the previous keys
// stay in force. A server that was open may get keys this way, but one with keys never becomes open.
func (s *Server) readKeys() (count int, changed bool, err error) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	list, tokens, err := s.readAccess()
	if err != nil {
		return 0, false, err
	}
	before := s.core.keys.Load()
	if len(list) == 0 && tokens == nil {
		if before != nil {
			return 0, false, errNoKeys
		}
		return 0, false, nil
	}
	keyring, err := door.NewKeyring(list, before)
	if err != nil {
		return 0, false, err
	}
	if before == nil {
		before = new(door.Keyring)
	}
	if tokens != nil {
		if keyring.Tokens, err = door.NewTokens(tokens, before.Tokens); err != nil {
			return 0, false, err
		}
	}
	s.core.keys.Store(keyring)
	before.Tokens.Close(keyring.Tokens)
	s.core.shares.EndInvalid()
	return len(list), !keyring.Same(before), nil
}

// reading is one readKeys for all who asked for it before it began.
type reading struct {
	done  chan struct{} // closed when count and err are set
	count int
	err   error
}

// readings are the readings for POST /api/reload.
type readings struct {
	mu       sync.Mutex // guards what follows
	underWay bool       // readAll runs
	next     *reading   // has not begun; nil if no caller waits for it
}

// readShared is readKeys for any number of callers: those who come while a reading is under way share the next one.
// Errors: ctx's, if it ends before the reading.
func (s *Server) readShared(ctx context.Context) (*reading, error) {
	s.readings.mu.Lock()
	if s.readings.next == nil {
		s.readings.next = &reading{done: make(chan struct{})}
	}
	next := s.readings.next
	if !s.readings.underWay {
		s.readings.underWay = true
		go s.readAll()
	}
	s.readings.mu.Unlock()
	select {
	case <-next.done:
		return next, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readAll reads the keys until no caller waits.
func (s *Server) readAll() {
	for {
		s.readings.mu.Lock()
		next := s.readings.next
		s.readings.next, s.readings.underWay = nil, next != nil
		s.readings.mu.Unlock()
		if next == nil {
			return
		}
		next.count, _, next.err = s.readKeys()
		close(next.done)
	}
}

// readAccess reads the keys and how tokens are checked; nil: no tokens are accepted.
func (s *Server) readAccess() (keys []door.Key, tokens *door.Tokens, err error) {
	if s.cfg.Keys != nil {
		if keys, err = s.cfg.Keys(); err != nil {
			return nil, nil, err
		}
	}
	if s.cfg.Tokens != nil {
		if tokens, err = s.cfg.Tokens(); err != nil {
			return nil, nil, err
		}
	}
	if tokens != nil {
		tokens.Issuer.Logger = s.cfg.Logger.Named("oidc")
	}
	return keys, tokens, nil
}

// closeTokens stops fetching the keys of tokens. Fetched ones remain usable.
func (s *Server) closeTokens() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if keys := s.core.keys.Load(); keys != nil {
		keys.Tokens.Close(nil)
	}
}

// HangUp handles SIGHUP: it reads the keys again, as POST /api/reload does. A change is recorded in the trail.
func (s *Server) HangUp() {
	count, changed, err := s.readKeys()
	if err != nil {
		s.cfg.Logger.Error(notReloaded, "error", err)
		return
	}
	if changed {
		s.cfg.Logger.Info("reloaded the API keys", "keys", count)
		s.core.tell(command.Tell{Kind: event.KeysReloaded, What: s.keysWords(count)}, "")
	}
}

// notReloaded is logged when a reload failed.
const notReloaded = "the API keys were not reloaded: those from before stay in force"

// keysWords returns the text for the trail.
func (s *Server) keysWords(count int) string {
	return s.cfg.Node.NodeID() + ": " + strconv.Itoa(count) + " keys"
}

// loadKeys calls readKeys for a new server.
func (s *Server) loadKeys() error {
	if _, _, err := s.readKeys(); err != nil {
		return fmt.Errorf("api keys: %w", err)
	}
	return nil
}

// Open reports whether the server has no keys and accepts no tokens, so that everyone who reaches it may do
// everything.
func (s *Server) Open() bool { return s.core.open() }

// Operator returns the name of the operator's key whose text is given. ok is false if it is not such a key or has
// expired. On an open server only the empty text is an operator's.
func (s *Server) Operator(text string) (name string, ok bool) {
	keys := s.core.keys.Load()
	if keys == nil {
		return "", text == ""
	}
	if !door.ValidKeyText([]byte(text)) && !door.IsLogin([]byte(text)) {
		return "", false
	}
	now := time.Now()
	k, _, _, bad := s.core.who(keys, []byte(text), now)
	if bad != nil || !k.Roles.Has(door.RoleOperator) {
		return "", false
	}
	return k.Name, !k.Expired(now)
}

// reload answers POST /api/reload: only this node reads its keys again.
func (s *Server) reload(r *request) {
	d := r.decoder()
	defer d.Free()
	if bad := d.Fields(d.Unknown); bad != nil {
		r.refuse(bad)
		return
	}
	did, err := s.readShared(r.ctx())
	if err != nil {
		r.refuseError(err)
		return
	}
	if did.err != nil {
		s.cfg.Logger.Error(notReloaded, "error", did.err)
		r.refuse(refuse.New(wire.CodeInvalidRequest, "The keys were not reloaded: "+did.err.Error(),
			"Correct the configuration of this node and reload again; the keys from before stay in force"))
		return
	}
	s.cfg.Logger.Info("reloaded the API keys", "keys", did.count, "by", r.by())
	r.tell(event.KeysReloaded, s.keysWords(did.count))
	b := jsonout.StringField(r.buffer(), `{"success":true,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.IntField(b, `,"keys":`, int64(did.count))
	r.send(fasthttp.StatusOK, append(b, '}'))
}
