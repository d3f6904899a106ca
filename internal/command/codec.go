package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Format names how a command is encoded for the worker. It is stored beside each payload; a worker claims only
// formats it knows.
const Format = 1

// ErrUnreadable says that a stored payload is not a command of a known format. Its text never quotes the
// payload.
var ErrUnreadable = errors.New("the payload is not a command of a known format")

// Encode returns the command as stored, in Format.
func (a Add) Encode() ([]byte, error) { return encode(a) }

func encode(command any) ([]byte, error) {
	payload, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("encode command: %w", err)
	}
	return payload, nil
}

// Decode reads a stored command. It is strict: an unknown format, unknown members, trailing data and a command
// without messages or scope are ErrUnreadable.
func Decode(format int, payload []byte) (Add, error) {
	var add Add
	if err := decode(format, payload, &add); err != nil {
		return Add{}, err
	}
	if len(add.Messages) == 0 || add.Scope.Empty() {
		return Add{}, ErrUnreadable
	}
	return add, nil
}

func decode(format int, payload []byte, command any) error {
	if format != Format {
		return fmt.Errorf("decode format %d: %w", format, ErrUnreadable)
	}
	reader := json.NewDecoder(bytes.NewReader(payload))
	reader.DisallowUnknownFields()
	if err := reader.Decode(command); err != nil {
		return ErrUnreadable
	}
	if _, err := reader.Token(); !errors.Is(err, io.EOF) {
		return ErrUnreadable
	}
	return nil
}
