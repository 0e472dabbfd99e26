package api

import "github.com/claimq/claimq/api/wire"

// joinNode answers POST /api/cluster/join.
func (r *request) joinNode() { r.refuse(refuse(wire.CodeNotFound)) }

// changeSuffrage answers POST /api/cluster/promote and /demote.
func (r *request) changeSuffrage() { r.refuse(refuse(wire.CodeNotFound)) }

// transfer answers POST /api/cluster/transfer.
func (r *request) transfer() { r.refuse(refuse(wire.CodeNotFound)) }

// hashes answers GET /api/cluster/hash.
func (r *request) hashes() { r.refuse(refuse(wire.CodeNotFound)) }
