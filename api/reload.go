package api

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/claimq/claimq/api/wire"
)

// errNoKeys is returned by ReloadKeys when a server that has keys would have
// none any more: that would open it to everybody.
var errNoKeys = errors.New("there is no key any more, which would open the server to everybody: keep one, or restart it without keys")

// ReloadKeys reads the keys anew and returns how many there are. On an error
// the keys from before stay in force. A server that was open has keys from then
// on; one that has keys never becomes open.
func (s *Server) ReloadKeys() (count int, err error) {
	if s.cfg.Keys == nil {
		return 0, nil
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	list, err := s.cfg.Keys()
	if err != nil {
		return 0, err
	}
	before := s.keys.Load()
	if len(list) == 0 {
		if before != nil {
			return 0, errNoKeys
		}
		return 0, nil
	}
	table, err := newKeyTable(list, before)
	if err != nil {
		return 0, err
	}
	s.keys.Store(table)
	return len(list), nil
}

// loadKeys is ReloadKeys of a server that is being made.
func (s *Server) loadKeys() error {
	if _, err := s.ReloadKeys(); err != nil {
		return fmt.Errorf("api keys: %w", err)
	}
	return nil
}

// Open reports whether the server has no keys, so that whoever reaches it may
// do everything.
func (s *Server) Open() bool { return s.keys.Load() == nil }

// reload answers POST /api/reload: this node reads its keys anew, and no other.
func (r *request) reload() {
	count, err := r.server.ReloadKeys()
	if err != nil {
		r.server.logger.Error("the API keys were not reloaded; those from before stay in force", "error", err)
		r.refuse(&refusal{
			code: wire.CodeInvalidRequest, text: "The keys were not reloaded: " + err.Error(),
			advice: "Correct the configuration of this node and reload again; the keys from before stay in force",
		})
		return
	}
	r.server.logger.Info("reloaded the API keys", "keys", count, "by", r.by())
	b := strconv.AppendInt(append(r.body(), `{"success":true,"keys":`...), int64(count), 10)
	r.send(fasthttp.StatusOK, append(b, '}'))
}
