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
	"github.com/claimq/claimq/api/door"
	"github.com/claimq/claimq/config"
)

// apiKeys returns a function that loads the configuration again, checks the secret files that it names, and returns
// its API keys.
func apiKeys(load func() (config.Loaded, error), files *secretFiles) func() ([]door.Key, error) {
	return func() ([]door.Key, error) {
		loaded, err := load()
		if err != nil {
			return nil, err
		}
		files.look(&loaded)
		return KeysOf(&loaded), nil
	}
}

// KeysOf returns the API keys and the credentials of a configuration, each with its field.
func KeysOf(loaded *config.Loaded) []door.Key {
	keys := make([]door.Key, 0, len(loaded.Keys)+len(loaded.SQS.Credentials))
	for i := range loaded.Keys {
		keys = append(keys, keyOf(&loaded.Keys[i], fmt.Sprintf("keys[%d]", i)))
	}
	for i := range loaded.SQS.Credentials {
		c := &loaded.SQS.Credentials[i]
		k := keyOf(&c.Key, fmt.Sprintf("credentials[%d]", i))
		k.AccessKeyID, k.Secret = c.AccessKeyID, c.Secret
		keys = append(keys, k)
	}
	return keys
}

func keyOf(k *config.Key, field string) door.Key {
	return door.Key{
		Field: field, Name: k.Name, Role: k.Role, Roles: k.Roles, SHA256: k.KeySHA256,
		RateLimitPerMinute: k.RateLimitPerMinute, TaskTypes: k.TaskTypes, ExpiresAt: k.ExpiresAt, Addresses: k.Addresses,
	}
}

// hangups receives SIGHUP from its creation on, because a process that does not listen would die of it.
type hangups struct{ signals chan os.Signal }

func newHangups() hangups {
	h := hangups{signals: make(chan os.Signal, 1)}
	signal.Notify(h.signals, syscall.SIGHUP)
	return h
}

// stop stops listening. It may be called twice.
func (h hangups) stop() { signal.Stop(h.signals) }

// call calls f at every SIGHUP and whenever also ticks, until stop is called, which waits for the end.
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

// warnOpen warns if no keys are required.
func warnOpen(server *api.Server, insecure bool, logger hclog.Logger) {
	switch {
	case !server.Open():
	case insecure:
		logger.Warn("no API keys and no oidc are configured, and --insecure is given: anyone who reaches the port may do everything")
	default:
		logger.Warn("no API keys and no oidc are configured: anyone who reaches the port may do everything")
	}
}
