package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/holdfast-memory/holdfast/internal/model"
	"github.com/holdfast-memory/holdfast/internal/task"
)

// Extract asks the server once.
func (c *Client) Extract(ctx context.Context, request model.Request) (model.Extraction, error) {
	ctx, cancel := model.Bounded(ctx, c.config.Timeout)
	defer cancel()
	started := time.Now()
	usage := model.Usage{Calls: 1}
	prompt := model.NewPrompt(request)
	schema, err := toolSchema(prompt.Schema)
	if err != nil {
		return model.Extraction{}, model.NewError(task.InternalFailure, "answer schema", err)
	}
	var response *http.Response
	message, err := c.sdk.Messages.New(ctx, sdk.MessageNewParams{
		Model:     c.config.Model,
		MaxTokens: int64(c.config.MaxOutputTokens),
		System:    []sdk.TextBlockParam{{Text: prompt.System}},
		Messages:  []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock(prompt.User))},
		Tools: []sdk.ToolUnionParam{{OfTool: &sdk.ToolParam{
			Name: model.AnswerName, InputSchema: schema, Description: sdk.String("Takes the facts worth remembering."),
		}}},
		ToolChoice: sdk.ToolChoiceUnionParam{OfTool: &sdk.ToolChoiceToolParam{
			Name: model.AnswerName, DisableParallelToolUse: sdk.Bool(true),
		}},
	}, option.WithResponseInto(&response))
	usage.Duration = time.Since(started)
	if err != nil {
		failure := classify(ctx, err, response)
		failure.Usage = usage
		return model.Extraction{}, failure
	}
	usage.TokensIn = message.Usage.InputTokens + message.Usage.CacheCreationInputTokens + message.Usage.CacheReadInputTokens
	usage.TokensOut = message.Usage.OutputTokens
	facts, failure := read(message, request)
	if failure != nil {
		failure.Usage, failure.Status = usage, http.StatusOK
		return model.Extraction{}, failure
	}
	return model.Extraction{Facts: facts, Usage: usage}, nil
}

// toolSchema returns the answer's schema as the tool's input.
func toolSchema(answer json.RawMessage) (sdk.ToolInputSchemaParam, error) {
	var schema struct {
		Properties           json.RawMessage `json:"properties"`
		Required             []string        `json:"required"`
		AdditionalProperties bool            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(answer, &schema); err != nil {
		return sdk.ToolInputSchemaParam{}, err
	}
	return sdk.ToolInputSchemaParam{
		Properties: schema.Properties, Required: schema.Required,
		ExtraFields: map[string]any{"additionalProperties": schema.AdditionalProperties},
	}, nil
}

// read takes the facts out of a message that arrived whole.
func read(message *sdk.Message, request model.Request) ([]model.Fact, *model.Error) {
	switch message.StopReason {
	case sdk.StopReasonRefusal:
		return nil, model.NewError(task.ExtractionRejected, "refusal", nil)
	case sdk.StopReasonMaxTokens:
		return nil, model.NewError(task.OutputInvalid, model.ReasonTruncated, nil)
	case sdk.StopReasonModelContextWindowExceeded:
		return nil, model.NewError(task.ExtractionRejected, "too long", nil)
	case sdk.StopReasonPauseTurn:
		return nil, model.NewError(task.OutputInvalid, "paused", nil)
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonToolUse:
	}
	answers := answersOf(message.Content)
	if len(answers) == 0 {
		return nil, model.NewError(task.OutputInvalid, model.ReasonEmpty, nil)
	}
	var facts []model.Fact
	for _, answer := range answers {
		found, err := model.Parse(answer, request)
		if err != nil {
			var failure *model.Error
			if errors.As(err, &failure) {
				return nil, failure
			}
			return nil, model.NewError(task.OutputInvalid, model.ReasonNotJSON, nil)
		}
		facts = append(facts, found...)
	}
	return facts, nil
}

// maxUses bounds how often one message may use the tool. It is told to do so once; a gateway that ignores that
// may split the answer.
const maxUses = 8

// answersOf returns the inputs of our tool, else the text as one answer, whatever stands before them.
func answersOf(blocks []sdk.ContentBlockUnion) []string {
	var uses, texts []string
	for _, block := range blocks {
		switch {
		case block.Type == "tool_use" && block.Name == model.AnswerName:
			uses = append(uses, string(block.Input))
		case block.Type == "text":
			texts = append(texts, block.Text)
		}
	}
	switch {
	case len(uses) > maxUses:
		return nil
	case len(uses) > 0:
		return uses
	case len(texts) > 0:
		return []string{strings.Join(texts, "\n")}
	default:
		return nil
	}
}
