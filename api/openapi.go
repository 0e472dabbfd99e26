package api

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/claimq/claimq/api/exchange"
)

// openAPISource is the source of the API's description.
//
//go:embed openapi.yaml
var openAPISource []byte

// openAPI answers GET /openapi.json.
func (s *Server) openAPI(r *exchange.Request) {
	description, err := s.description()
	if err != nil {
		r.RefuseCode(err)
		return
	}
	if r.TakeTurn() {
		r.SendShared("application/json", description)
	}
}

// describe returns the API's description in JSON, with the version of this binary.
func describe(source []byte, version string) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	info, ok := document["info"].(map[string]any)
	if !ok {
		return nil, errors.New("openapi.yaml has no info")
	}
	if version != "" {
		info["version"] = version
	}
	description, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("write openapi.json: %w", err)
	}
	return description, nil
}
