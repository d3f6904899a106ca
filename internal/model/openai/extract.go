package openai

import (
	"context"
	"errors"
	"net/http"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Client is a model.Extractor over chat completions. It is safe for concurrent use.
type Client struct {
	account
	chat    sdk.ChatCompletionService
	dialect *dialect
}

// New checks config, fills in its defaults and returns a client. It opens no connection.
func New(config Config) (*Client, error) {
	config, base, err := config.checked(DefaultModel)
	if err != nil {
		return nil, err
	}
	shared, options := newAccount(config, base, maxChatAnswer)
	return &Client{
		account: shared,
		chat:    sdk.NewChatCompletionService(options...),
		dialect: newDialect(base.Host == officialHost),
	}, nil
}

// Extract asks the server once. When the server refuses a parameter it doesn't know, the question is repeated
// without it, which counts as a further call.
func (c *Client) Extract(ctx context.Context, request model.Request) (model.Extraction, error) {
	ctx, cancel := model.Bounded(ctx, c.config.Timeout)
	defer cancel()
	started := time.Now()
	prompt := model.NewPrompt(request)
	form, usage := c.dialect.current(), model.Usage{}
	for {
		completion, failure := c.ask(ctx, prompt, form, &usage)
		if failure == nil {
			c.dialect.learn(form)
			usage.Duration = time.Since(started)
			return read(completion, request, usage)
		}
		simpler, ok := form.without(failure.refusal)
		if !ok {
			usage.Duration = time.Since(started)
			failure.err.Usage = usage
			return model.Extraction{}, failure.err
		}
		form = simpler
	}
}

func (c *Client) ask(ctx context.Context, prompt model.Prompt, form form, usage *model.Usage) (*sdk.ChatCompletion, *failedCall) {
	params := sdk.ChatCompletionNewParams{
		Model:    c.config.Model,
		Messages: []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage(prompt.System), sdk.UserMessage(prompt.User)},
	}
	switch form.format {
	case formatSchema:
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
				Name: model.AnswerName, Strict: sdk.Bool(true), Schema: prompt.Schema,
			},
		}
	case formatObject:
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case formatFree:
	}
	switch form.limit {
	case limitCompletion:
		params.MaxCompletionTokens = sdk.Int(int64(c.config.MaxOutputTokens))
	case limitTokens:
		params.MaxTokens = sdk.Int(int64(c.config.MaxOutputTokens))
	case limitNone:
	}
	var response *http.Response
	usage.Calls++
	completion, err := c.chat.New(ctx, params, option.WithResponseInto(&response))
	if err != nil {
		return nil, classify(ctx, err, response)
	}
	usage.TokensIn += completion.Usage.PromptTokens
	usage.TokensOut += completion.Usage.CompletionTokens
	return completion, nil
}

// read takes the facts out of a completion that arrived whole.
func read(completion *sdk.ChatCompletion, request model.Request, usage model.Usage) (model.Extraction, error) {
	fail := func(class task.Class, reason string) (model.Extraction, error) {
		failure := model.NewError(class, reason, nil)
		failure.Usage, failure.Status = usage, http.StatusOK
		return model.Extraction{}, failure
	}
	if len(completion.Choices) == 0 {
		if _, ok := completion.JSON.ExtraFields["error"]; ok {
			return fail(task.ProviderUnavailable, "error inside a success") // what some gateways do
		}
		return fail(task.OutputInvalid, "no choice")
	}
	choice := completion.Choices[0]
	switch {
	case choice.Message.Refusal != "":
		return fail(task.ExtractionRejected, "refusal")
	case choice.FinishReason == "content_filter":
		return fail(task.ExtractionRejected, "content filter")
	case choice.FinishReason == "length":
		return fail(task.OutputInvalid, model.ReasonTruncated)
	}
	facts, err := model.Parse(choice.Message.Content, request)
	if err != nil {
		var failure *model.Error
		if errors.As(err, &failure) {
			failure.Usage, failure.Status = usage, http.StatusOK
		}
		return model.Extraction{}, err
	}
	return model.Extraction{Facts: facts, Usage: usage}, nil
}
