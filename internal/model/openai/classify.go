package openai

import (
	"context"
	"errors"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// failedCall is a call without a usable answer: its class, and the provider's words while the package still
// needs them.
type failedCall struct {
	err     *model.Error
	refusal model.Refusal
}

// classify turns what the SDK reports into a class. The SDK's error itself goes no further: it holds the request
// and the answer.
func classify(ctx context.Context, err error, response *http.Response) *failedCall {
	if response == nil || ctx.Err() != nil {
		return &failedCall{err: model.Unanswered(ctx, err, 0)}
	}
	if response.StatusCode < 400 {
		return &failedCall{err: model.Unanswered(ctx, err, response.StatusCode)}
	}
	refusal := model.Refusal{Status: response.StatusCode, Header: response.Header}
	var refused *sdk.Error
	if errors.As(err, &refused) {
		refusal.Type, refusal.Code, refusal.Param, refusal.Message = refused.Type, refused.Code, refused.Param, refused.Message
	}
	if refusal.Message == "" {
		refusal.Message = words(response)
	}
	return &failedCall{err: model.Classify(refusal, time.Now()), refusal: refusal}
}

// words returns the beginning of a refusal's body, which the SDK keeps readable. Servers that aren't OpenAI put
// their reason elsewhere than into error.message.
func words(response *http.Response) string {
	if response.Body == nil {
		return ""
	}
	buffer := make([]byte, 4<<10) // the first words name the parameter or the reason
	n, _ := response.Body.Read(buffer)
	return string(buffer[:max(n, 0)])
}
