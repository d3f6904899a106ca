package anthropic

import (
	"context"
	"errors"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/holdfast-memory/holdfast/internal/model"
)

// classify turns what the SDK reports into a class. The SDK's error itself goes no further: its text quotes the
// whole answer.
func classify(ctx context.Context, err error, response *http.Response) *model.Error {
	if response == nil || ctx.Err() != nil {
		return model.Unanswered(ctx, err, 0)
	}
	if response.StatusCode < 400 {
		return model.Unanswered(ctx, err, response.StatusCode)
	}
	refusal := model.Refusal{Status: response.StatusCode, Header: response.Header}
	var refused *sdk.Error
	if errors.As(err, &refused) {
		refusal.Type, refusal.Code, refusal.Message = string(refused.Type()), string(refused.ErrorCode()), refused.Message
	}
	return model.Classify(refusal, time.Now())
}
