// Package postgres is the only place with SQL: the durable store behind every use case. One file an aggregate
// or a step, the statement beside its one caller.
//
// Rules it guards: one use case is one transaction, opened by InTx with the workspace's gate as its first
// statement; locks are taken in the order gate, key, lane, task, records by id, account; every write for a
// claimed task starts with the fenced update of its row (I3); refusals are values and leave nothing behind
// (I2); the outcome of a COMMIT is committed, rolled back or unknown, never guessed. All deadlines are decided
// by the database's clock (I11). It may import the domain and the use-case packages whose ports it implements.
package postgres
