package model

import (
	"reflect"
	"testing"
)

func TestPolicy(t *testing.T) {
	t.Parallel()

	t.Run("ComesBackAsItWasKept", func(t *testing.T) {
		t.Parallel()
		p := Policy{Prompt: "holdfast-9", Extractor: "openai", Model: "gpt-4.1-mini"}
		encoded, err := p.Encode()
		if err != nil || string(encoded) != `{"prompt":"holdfast-9","extractor":"openai","model":"gpt-4.1-mini"}` {
			t.Fatalf("encoded %s, %v", encoded, err)
		}
		if got := ReadPolicy(encoded); !reflect.DeepEqual(got, p) {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("WhatCannotBeReadIsEmpty", func(t *testing.T) {
		t.Parallel()
		for _, text := range []string{"", "{}", "null", "nonsense", `{"prompt":3}`, `{"prompt":"a","model":[]}`} {
			if got := ReadPolicy([]byte(text)); !reflect.DeepEqual(got, Policy{}) {
				t.Errorf("%q became %+v", text, got)
			}
		}
	})
}
