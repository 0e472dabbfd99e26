package api

import _ "github.com/getkin/kin-openapi/openapi3"
import _ "github.com/getkin/kin-openapi/openapi3filter"
import _ "github.com/getkin/kin-openapi/routers/gorillamux"
