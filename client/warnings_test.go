package client

import (
	"bytes"
	"log/slog"
	"testing"
)

// Without a Logger the worker logs warnings, and only those, to slog.Default.
func TestWorkerConfig_warnsByDefault(t *testing.T) {
	t.Parallel()
	cfg, err := WorkerConfig{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if ctx := t.Context(); !cfg.Logger.Enabled(ctx, slog.LevelError) || !cfg.Logger.Enabled(ctx, slog.LevelWarn) || cfg.Logger.Enabled(ctx, slog.LevelInfo) {
		t.Error("the default logger does not begin at Warn")
	}
	var said bytes.Buffer
	drop := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	l := slog.New(warnings{slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: drop})}).With("a", 1).WithGroup("g")
	l.Info("not told")
	l.Warn("told", "b", 2)
	if want := "level=WARN msg=told a=1 g.b=2\n"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
}
