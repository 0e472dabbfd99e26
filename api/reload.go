package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/exchange"
	"github.com/claimq/claimq/api/jsonout"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/api/login"
	"github.com/claimq/claimq/api/refuse"
	"github.com/claimq/claimq/api/wire"
	"github.com/claimq/claimq/fsm/command"
	"github.com/claimq/claimq/fsm/event"
)

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
	before := s.host.Keys.Load()
	if len(list) == 0 && tokens == nil {
		if before != nil {
			return 0, false, errNoKeys
		}
		return 0, false, nil
	}
	table, err := keyring.New(list, before)
	if err != nil {
		return 0, false, err
	}
	if before == nil {
		before = new(keyring.Ring)
	}
	if tokens != nil {
		if table.Tokens, err = keyring.NewTokens(tokens, before.Tokens); err != nil {
			return 0, false, err
		}
	}
	s.host.Keys.Store(table)
	before.Tokens.Close(table.Tokens)
	s.host.Shares.Look()
	return len(list), !table.Same(before), nil
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
	next     *reading   // has not begun; nil: nobody waits for one
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

// readAll reads the keys until nobody waits for that.
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
func (s *Server) readAccess() (keys []keyring.Key, tokens *keyring.Tokens, err error) {
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
	if keys := s.host.Keys.Load(); keys != nil {
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
		s.host.Tell(command.Tell{Kind: event.KeysReloaded, What: s.keysWords(count)}, "")
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
func (s *Server) Open() bool { return s.host.Open() }

// Operator returns the name of the operator's key whose text is given. ok is false if it is not such a key or has
// expired. On an open server only the empty text is an operator's.
func (s *Server) Operator(text string) (name string, ok bool) {
	keys := s.host.Keys.Load()
	if keys == nil {
		return "", text == ""
	}
	if !keyring.ValidText([]byte(text)) && !login.IsText([]byte(text)) {
		return "", false
	}
	now := time.Now()
	k, _, _, bad := s.host.Who(keys, []byte(text), now)
	if bad != nil || !k.Roles.Has(keyring.RoleOperator) {
		return "", false
	}
	return k.Name, !k.Expired(now)
}

// reload answers POST /api/reload: only this node reads its keys again.
func (s *Server) reload(r *exchange.Request) {
	d := r.Decoder()
	defer d.Free()
	if bad := d.Fields(d.Unknown); bad != nil {
		r.Refuse(bad)
		return
	}
	did, err := s.readShared(r.Wait())
	if err != nil {
		r.RefuseError(err)
		return
	}
	if did.err != nil {
		s.cfg.Logger.Error(notReloaded, "error", did.err)
		r.Refuse(refuse.New(wire.CodeInvalidRequest, "The keys were not reloaded: "+did.err.Error(),
			"Correct the configuration of this node and reload again; the keys from before stay in force"))
		return
	}
	s.cfg.Logger.Info("reloaded the API keys", "keys", did.count, "by", r.By())
	r.Tell(event.KeysReloaded, s.keysWords(did.count))
	b := jsonout.StringField(r.Body(), `{"success":true,"node_id":`, s.cfg.Node.NodeID())
	b = jsonout.IntField(b, `,"keys":`, int64(did.count))
	r.Send(fasthttp.StatusOK, append(b, '}'))
}
