// Package outbox runs client/outbox on real databases, PostgreSQL and MariaDB, and kills
// them and the relays.
package outbox
