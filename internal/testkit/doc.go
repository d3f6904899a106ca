// Package testkit gives tests the real servers and processes that Holdfast runs on: PostgreSQL (one server per test
// binary, a migrated database per test), NATS in this process, proxies that break connections at a chosen moment, the
// built binaries, and processes that can be killed.
//
// Rules it guards: a missing service fails a test, nothing is skipped; a helper never touches a server that it did not
// start; everything it starts ends with the test, or with the test binary when that is killed.
//
// Every package that uses a database or binaries declares
//
//	func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }
//
// Only tests import it. It may import everything below cmd.
package testkit
