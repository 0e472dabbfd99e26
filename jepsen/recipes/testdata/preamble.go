package snippet

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/claimq/claimq/client"
	"github.com/claimq/claimq/client/clienttest"
	"github.com/claimq/claimq/client/kind"
	"github.com/claimq/claimq/client/outbox"
	"github.com/claimq/claimq/client/periodic"
)

// What the reader has.

type Mail struct{ To string }

type Order struct {
	ID    string
	Total int
}

type Report struct{ ID string }

type Hook struct {
	URL  string
	Body []byte
}

var (
	errNoSuchAddress = errors.New("no such address")
	errBusy          = errors.New("busy")
	errMaintenance   = errors.New("maintenance")
)

var w *client.Worker

func newWorker(c *client.Client) (*client.Worker, error) {
	return client.NewWorker(c, client.WorkerConfig{})
}

func send(context.Context, Mail, int64) error { return nil }

func render(context.Context, Report) ([]byte, error) { return nil, nil }

func get(context.Context, string) (*http.Response, error) { return nil, nil }
