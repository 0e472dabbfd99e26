package client

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNew_defaults(t *testing.T) {
	t.Setenv("CLAIMQ_ENDPOINTS", "")
	t.Setenv("CLAIMQ_API_KEY", "")
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if diff := cmp.Diff([]string{"http://127.0.0.1:7400"}, c.nodes.Endpoints()); diff != "" || c.timeout != 30*time.Second || c.apiKey != "" {
		t.Errorf("got %+v", c)
	}
}

func TestNew_environment(t *testing.T) {
	t.Setenv("CLAIMQ_ENDPOINTS", "http://a:1, https://b/base/ ,")
	t.Setenv("CLAIMQ_API_KEY", "k")
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if diff := cmp.Diff([]string{"http://a:1", "https://b/base"}, c.nodes.Endpoints()); diff != "" || c.apiKey != "k" {
		t.Errorf("got %v, %q", c.nodes.Endpoints(), c.apiKey)
	}
	given, err := New(Config{Endpoints: []string{"http://c:1"}, APIKey: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	if given.nodes.Endpoints()[0] != "http://c:1" || given.apiKey != "mine" {
		t.Errorf("the environment beats the configuration: %v, %q", given.nodes.Endpoints(), given.apiKey)
	}
}

func TestNew_refusals(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"no scheme":        {Endpoints: []string{"localhost:7400"}},
		"no host":          {Endpoints: []string{"http://"}},
		"a query":          {Endpoints: []string{"http://a?b=c"}},
		"a user":           {Endpoints: []string{"http://u:p@a"}},
		"not a URL":        {Endpoints: []string{"http://a\x7f"}},
		"too many":         {Endpoints: make([]string, endpointsMax+1)},
		"negative timeout": {Timeout: -1},
		"a broken key":     {APIKey: "a\nb"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
