package server

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/claimq/claimq/api"
	"github.com/claimq/claimq/api/keyring"
	"github.com/claimq/claimq/config"
)

// apiKeys returns a function that reads the configuration again with load, has files
// look at the secrets that it names, and returns the API keys in it.
func apiKeys(load func() (config.Loaded, error), files *secretFiles) func() ([]keyring.Key, error) {
	return func() ([]keyring.Key, error) {
		loaded, err := load()
		if err != nil {
			return nil, err
		}
		files.look(&loaded)
		return KeysOf(&loaded), nil
	}
}

// KeysOf returns the API keys of a configuration, each with the field that it is from.
func KeysOf(loaded *config.Loaded) []keyring.Key {
	keys := make([]keyring.Key, len(loaded.Keys))
	for i := range loaded.Keys {
		keys[i] = keyOf(&loaded.Keys[i], fmt.Sprintf("keys[%d]", i))
	}
	return keys
}

func keyOf(k *config.Key, field string) keyring.Key {
	return keyring.Key{
		Field: field, Name: k.Name, Role: k.Role, Roles: k.Roles, SHA256: k.KeySHA256,
		RateLimitPerMinute: k.RateLimitPerMinute, TaskTypes: k.TaskTypes, ExpiresAt: k.ExpiresAt, Addresses: k.Addresses,
	}
}

// hangups notes SIGHUP from the moment that it is made: a process that does not
// listen would die of it.
type hangups struct{ signals chan os.Signal }

func newHangups() hangups {
	h := hangups{signals: make(chan os.Signal, 1)}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// stop ends the listening; it is safe twice.
func (h hangups) stop() { signal.Stop(h.signals) }

// call calls f at every SIGHUP, and as often as also ticks, until stop is called, which
// waits for that.
func (h hangups) call(f func(), also <-chan time.Time) (stop func()) {
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-h.signals:
			case <-also:
			case <-ended:
				return
			}
			f()
		}
	})
	return func() {
		h.stop()
		close(ended)
		wait.Wait()
	}
}

// warnOpen says that nobody is asked for a key, if it is so.
func warnOpen(server *api.Server, insecure bool, logger hclog.Logger) {
	switch {
	case !server.Open():
	case insecure:
		logger.Warn("no API keys and no oidc are configured, and --insecure is given: whoever reaches the port, from wherever, may do everything")
	default:
		logger.Warn("no API keys and no oidc are configured: whoever reaches the port may do everything")
	}
}
