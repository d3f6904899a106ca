package stubmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// object is JSON that is written once and never read here.
type object map[string]any

// reply sends answer in the dialect of the call.
func (s *Server) reply(ctx context.Context, w http.ResponseWriter, call Call, answer Answer) {
	switch {
	case answer.Drop:
		panic(http.ErrAbortHandler)
	case answer.Body != "":
		send(w, answer, []byte(answer.Body))
	case answer.Status != 0 && answer.Status != http.StatusOK:
		send(w, answer, encode(refusal(call.Endpoint, answer)))
	case call.Endpoint == Embeddings:
		send(w, answer, s.embeddings(ctx, call))
	case call.Endpoint == Models:
		send(w, answer, encode(object{
			"object": "list", "has_more": false, "first_id": "stub", "last_id": "stub",
			"data": []object{{"id": "stub", "object": "model", "type": "model", "display_name": "Stub", "created": 1, "owned_by": "stub", "created_at": "2026-01-01T00:00:00Z"}},
		}))
	default:
		if !answer.custom && answer.Content == "" && answer.Stop == "" {
			answer = FactLines(call)
		}
		if call.Endpoint == Chat {
			send(w, answer, encode(chatCompletion(call, answer)))
		} else {
			send(w, answer, encode(message(call, answer)))
		}
	}
}

// send writes the body. A cut one announces its whole length and stops in the middle, which the client sees as
// an unexpected end.
func send(w http.ResponseWriter, answer Answer, body []byte) {
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	if answer.ContentType == "" {
		answer.ContentType = "application/json"
	}
	w.Header().Set("Content-Type", answer.ContentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	if answer.Status == 0 {
		answer.Status = http.StatusOK
	}
	w.WriteHeader(answer.Status)
	if !answer.Cut {
		_, _ = w.Write(body) // a client that has gone misses it
		return
	}
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("stub model: %v", err)) // a fault of this package: objects of strings and numbers encode
	}
	return body
}

// tokens is a rough count that grows with the text, as a provider's does.
func tokens(text string) int { return len(text)/4 + 1 }

func chatCompletion(call Call, answer Answer) object {
	finish, refused, content := "stop", any(nil), any(answer.Content)
	switch answer.Stop {
	case StopLength:
		finish = "length"
	case StopFilter:
		finish, content = "content_filter", nil
	case StopRefusal:
		refused, content = answer.Content, nil
	}
	in, out := tokens(string(call.Body)), tokens(answer.Content)
	return object{
		"id": fmt.Sprintf("chatcmpl-%d", call.Number), "object": "chat.completion", "created": call.At.Unix(), "model": "stub",
		"choices": []object{{
			"index": 0, "finish_reason": finish, "logprobs": nil,
			"message": object{"role": "assistant", "content": content, "refusal": refused},
		}},
		"usage": object{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out},
	}
}

func message(call Call, answer Answer) object {
	blocks := []object{}
	if answer.Thinking != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": answer.Thinking, "signature": "stub"})
	}
	stop := "end_turn"
	if json.Valid([]byte(answer.Content)) && answer.Content[0] == '{' {
		stop = "tool_use"
		blocks = append(blocks, object{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%d", call.Number), "name": "remember", "input": json.RawMessage(answer.Content),
		})
	} else {
		blocks = append(blocks, object{"type": "text", "text": answer.Content})
	}
	switch answer.Stop {
	case StopLength:
		stop = "max_tokens"
	case StopFilter, StopRefusal:
		stop = "refusal"
	}
	return object{
		"id": fmt.Sprintf("msg_%d", call.Number), "type": "message", "role": "assistant", "model": "stub",
		"content": blocks, "stop_reason": stop, "stop_sequence": nil,
		"usage": object{"input_tokens": tokens(string(call.Body)), "output_tokens": tokens(answer.Content)},
	}
}

func (s *Server) embeddings(ctx context.Context, call Call) []byte {
	embedding, err := s.embedder.Embed(ctx, call.Inputs)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	data, size := []object{}, 0
	for i, vector := range embedding.Vectors {
		data = append(data, object{"object": "embedding", "index": i, "embedding": vector})
		size += tokens(call.Inputs[i])
	}
	return encode(object{
		"object": "list", "model": "stub", "data": data, "usage": object{"prompt_tokens": size, "total_tokens": size},
	})
}

// refusal is an error in the dialect of the endpoint. The models endpoint answers as OpenAI does.
func refusal(endpoint Endpoint, answer Answer) object {
	if endpoint == Messages {
		return object{"type": "error", "error": object{"type": anthropicType(answer.Status), "message": answer.Words}}
	}
	var code, param any
	if answer.Code != "" {
		code = answer.Code
	}
	if answer.Param != "" {
		param = answer.Param
	}
	return object{"error": object{"message": answer.Words, "type": "stub_error", "code": code, "param": param}}
}

func anthropicType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}
