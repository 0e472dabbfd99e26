package api

import "github.com/claimq/claimq/api/wire"

// openAPI answers GET /openapi.json.
func (r *request) openAPI() { r.refuse(refuse(wire.CodeNotFound)) }
