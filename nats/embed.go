// Package natsconfig holds the definitions of the WAKE stream and its consumers, as the `nats` command line reads them:
//
//	nats stream add WAKE --config wake.stream.json [--replicas 3]
//	nats consumer add WAKE interactive --config interactive.consumer.json
//
// Package wakeup decodes the same bytes. Durations are nanoseconds. It may import nothing of this module.
package natsconfig

import _ "embed"

var (
	//go:embed wake.stream.json
	stream string
	//go:embed interactive.consumer.json
	interactive string
	//go:embed bulk.consumer.json
	bulk string
)

// Stream is the definition of the stream WAKE.
func Stream() []byte { return []byte(stream) }

// Consumers are the definitions of the stream's durable consumers, by their name, which is also the class of the hints
// that they deliver.
func Consumers() map[string][]byte {
	return map[string][]byte{"interactive": []byte(interactive), "bulk": []byte(bulk)}
}
