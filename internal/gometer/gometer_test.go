package gometer_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/claimq/claimq/internal/gometer"
)

// In OpenMetrics each metric is described once.
func TestRegister(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	gometer.Register(registry)
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text")
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(answer, request)
	described := map[string]bool{}
	for line := range strings.Lines(answer.Body.String()) {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, _, _ = strings.Cut(name, " ")
			if described[name] {
				t.Errorf("%s is described twice", name)
			}
			described[name] = true
		}
	}
	for _, name := range []string{"go_goroutines", "go_memory_classes_heap_objects_bytes", "process_resident_memory_bytes"} {
		if !described[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
