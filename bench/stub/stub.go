// Package stub is a model server of the OpenAI dialect that answers at once: one fact for each conversation, the same
// vector for each text. Everything that is measured with a model talks to it.
//
// It imports nothing of Holdfast.
package stub

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	dimensions = 1536     // as the most used model's
	maxBody    = 16 << 20 // far above any request here
	stopBound  = 5 * time.Second
)

// Server is a running stub.
type Server struct {
	server  *http.Server
	url     string
	numbers string // the vector as JSON
	packed  string // the vector as base64
	calls   atomic.Int64
}

// Start starts one on this machine.
func Start(ctx context.Context) (*Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the stub model: %w", err)
	}
	s := &Server{url: "http://" + listener.Addr().String() + "/v1"}
	s.numbers, s.packed = vector()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("POST /v1/embeddings", s.embed)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: stopBound}
	go func() { _ = s.server.Serve(listener) }() // ends with Stop
	return s, nil
}

// URL is the base that clients are given.
func (s *Server) URL() string { return s.url }

// Calls is how many requests it has answered.
func (s *Server) Calls() int64 { return s.calls.Load() }

// Stop ends it.
func (s *Server) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopBound)
	defer cancel()
	return errors.Join(s.server.Shutdown(ctx), s.server.Close())
}

func vector() (numbers, packed string) {
	list := make([]string, dimensions)
	var bytes []byte
	for i := range list {
		x := float32(math.Sin(float64(i+1))) / float32(math.Sqrt(dimensions/2)) // about the length 1
		list[i] = fmt.Sprintf("%g", x)
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
	}
	return "[" + strings.Join(list, ",") + "]", base64.StdEncoding.EncodeToString(bytes)
}

// chat answers one fact, in the form that Holdfast asks for with a schema, or in that which mem0's prompt describes.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client has gone
	}
	fact := fmt.Sprintf("The user's favourite number is %d", rand.Int64N(1<<40))
	content := fmt.Sprintf(`{"memory":[{"id":"0","text":%q,"attributed_to":"user"}]}`, fact)
	if strings.Contains(string(body), `"json_schema"`) {
		content = fmt.Sprintf(`{"facts":[{"text":%q}]}`, fact)
	}
	s.answer(w, map[string]any{
		"id": "stub", "object": "chat.completion", "created": 1, "model": "stub",
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": content},
		}},
		"usage": map[string]any{"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320},
	})
}

func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input  json.RawMessage `json:"input"`
		Format string          `json:"encoding_format"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBody)).Decode(&request); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	var texts []string
	if json.Unmarshal(request.Input, &texts) != nil {
		texts = []string{""}
	}
	value := json.RawMessage(s.numbers)
	if request.Format == "base64" {
		value = json.RawMessage(`"` + s.packed + `"`)
	}
	data := make([]any, len(texts))
	for i := range data {
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": value}
	}
	s.answer(w, map[string]any{
		"object": "list", "model": "stub", "data": data, "usage": map[string]any{"prompt_tokens": 8, "total_tokens": 8},
	})
}

func (s *Server) answer(w http.ResponseWriter, v any) {
	s.calls.Add(1)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}
