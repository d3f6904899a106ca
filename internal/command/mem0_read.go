package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-memory/holdfast/internal/fault"
)

// MaxMem0 bounds an export of mem0 in bytes: what it holds beside its memories makes it no four times as large as the
// greatest snapshot.
const MaxMem0 = 4 * MaxSnapshot

// ReadMem0 hands the memories of an export to yield, one at a time and numbered from 1. An export is a list of
// memories, an object with such a list as its results or memories (as the answers of mem0 are, one page after another),
// or one memory a line. Raw is valid until yield returns. Fault INVALID_BODY for what can't be read; it quotes nothing.
func ReadMem0(r io.Reader, yield func(position int, raw []byte) error) error {
	e := &mem0Export{reader: jsontext.NewDecoder(r), yield: yield}
	for {
		var err error
		switch e.reader.PeekKind() {
		case jsontext.KindBeginArray:
			err = e.list()
		case jsontext.KindBeginObject:
			err = e.object()
		case jsontext.KindInvalid:
			if _, err = e.reader.ReadToken(); errors.Is(err, io.EOF) {
				return nil
			}
			err = e.broken(err)
		default:
			err = fault.At(fault.InvalidBody, "", "a list of memories, an object with results, or one memory a line")
		}
		if err != nil {
			return err
		}
	}
}

// mem0Export is an export as it is read.
type mem0Export struct {
	reader *jsontext.Decoder
	yield  func(position int, raw []byte) error
	count  int
}

func (e *mem0Export) broken(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok || errors.Is(err, io.ErrUnexpectedEOF) {
		at := e.reader.InputOffset()
		if syntax != nil {
			at = syntax.ByteOffset
		}
		return fault.At(fault.InvalidBody, "", fmt.Sprintf("valid JSON; it is broken near byte %d", at))
	}
	return fmt.Errorf("read export: %w", err)
}

func (e *mem0Export) list() error {
	if _, err := e.reader.ReadToken(); err != nil {
		return e.broken(err)
	}
	for e.reader.PeekKind() != jsontext.KindEndArray {
		raw, err := e.reader.ReadValue()
		if err != nil {
			return e.broken(err)
		}
		e.count++
		if err := e.yield(e.count, raw); err != nil {
			return err
		}
	}
	if _, err := e.reader.ReadToken(); err != nil {
		return e.broken(err)
	}
	return nil
}

// object reads a page of memories, or a memory: which of both it is shows in its members.
func (e *mem0Export) object() error {
	if _, err := e.reader.ReadToken(); err != nil {
		return e.broken(err)
	}
	var memory bytes.Buffer
	page := false
	for e.reader.PeekKind() != jsontext.KindEndObject {
		name, err := e.reader.ReadValue()
		if err != nil {
			return e.broken(err)
		}
		if text := string(name); (text == `"results"` || text == `"memories"`) && e.reader.PeekKind() == jsontext.KindBeginArray {
			page = true
			if err := e.list(); err != nil {
				return err
			}
			continue
		}
		if memory.Len() > 0 {
			memory.WriteByte(',')
		}
		memory.Write(name)
		memory.WriteByte(':')
		value, err := e.reader.ReadValue()
		if err != nil {
			return e.broken(err)
		}
		memory.Write(value)
	}
	if _, err := e.reader.ReadToken(); err != nil {
		return e.broken(err)
	}
	if page {
		return nil
	}
	e.count++
	return e.yield(e.count, fmt.Appendf(nil, "{%s}", memory.Bytes()))
}
