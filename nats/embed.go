// Package natsconfig holds the definitions of the WAKE stream and its consumers, as the `nats` command line reads them:
//
//	nats stream add WAKE --config wake.stream.json [--replicas 3]
//	nats consumer add WAKE interactive --config interactive.consumer.json
//
// Package wakeup decodes the same bytes; durations are nanoseconds. Beside them it holds what each process may do at a
// server with TLS and nkeys, and the templates of such a server's configuration. It may import nothing of this module.
package natsconfig

import _ "embed"

var (
	//go:embed wake.stream.json
	stream string
	//go:embed interactive.consumer.json
	interactive string
	//go:embed bulk.consumer.json
	bulk string
	//go:embed secure.conf.tmpl
	secureServer string
	//go:embed users.conf.tmpl
	secureUsers string
)

// ServerTemplate is a server's configuration with TLS, for package credential to fill in.
func ServerTemplate() string { return secureServer }

// UsersTemplate is the part of it that names the users.
func UsersTemplate() string { return secureUsers }

// Stream is the definition of the stream WAKE.
func Stream() []byte { return []byte(stream) }

// Consumers are the definitions of the stream's durable consumers, by their name, which is also the class of the hints
// that they deliver.
func Consumers() map[string][]byte {
	return map[string][]byte{"interactive": []byte(interactive), "bulk": []byte(bulk)}
}
