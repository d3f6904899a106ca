package stubmodel

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ProviderWords stands in every refusal, refusing answer and page of the stub. It must never be seen outside
// the adapters.
const ProviderWords = "stub-provider-words"

// Stop says why the model stopped.
type Stop string

// The reasons. A finished answer has none.
const (
	StopLength  Stop = "length"
	StopFilter  Stop = "filter"
	StopRefusal Stop = "refusal"
)

// Answer is what the stub sends. The zero Answer is the default one.
type Answer struct {
	// Content is the model's own text. The Anthropic dialect sends an object as the tool's input, and anything
	// else as text.
	Content string
	Stop    Stop
	// Thinking puts a thinking block before the answer (Anthropic only).
	Thinking string

	// Status other than 0 and 200 is a refusal with the words below, in the dialect's form.
	Status int
	Header http.Header
	Code   string
	Param  string
	Words  string

	// Body replaces the whole HTTP body, as ContentType.
	Body        string
	ContentType string
	// Cut closes the connection in the middle of the body, Drop before the first byte.
	Cut  bool
	Drop bool

	custom bool
}

// Reply always gives the same answer.
func Reply(answer Answer) Behavior { return func(Call) Answer { return answer } }

// Sequence gives the answers one after the other, each once, and then the last one again and again. It keeps
// its place and serves one rule.
func Sequence(answers ...Answer) Behavior {
	next := make(chan int, 1)
	next <- 0
	return func(Call) Answer {
		place := <-next
		next <- min(place+1, len(answers)-1)
		return answers[place]
	}
}

// Content is an answer in the model's own words.
func Content(text string) Answer { return Answer{Content: text, custom: true} }

// Facts is a valid answer with these facts; without any it says that there is nothing to remember.
func Facts(texts ...string) Answer {
	facts := make([]Fact, 0, len(texts))
	for _, text := range texts {
		facts = append(facts, Fact{Text: text})
	}
	return FactList(facts)
}

// Fact is one fact of an answer. Supersedes and categories are sent as they are, whether the request knows them or not,
// and left out when they are nil.
type Fact struct {
	Text       string `json:"text"`
	Supersedes any    `json:"supersedes,omitempty"`
	Categories any    `json:"categories,omitempty"`
}

// FactList is a valid answer with these facts.
func FactList(facts []Fact) Answer {
	encoded, err := json.Marshal(map[string]any{"facts": facts})
	if err != nil {
		return Answer{Status: http.StatusInternalServerError, Words: ProviderWords}
	}
	return Content(string(encoded))
}

// Truncated is an answer that the token limit cut off.
func Truncated() Answer { return Answer{Content: `{"facts":[{"text":"a"},{"te`, Stop: StopLength} }

// Refused is a model that declines.
func Refused() Answer { return Answer{Content: ProviderWords, Stop: StopRefusal} }

// Filtered is an answer that a content filter withheld.
func Filtered() Answer { return Answer{Stop: StopFilter} }

// Refuse is an error of the API.
func Refuse(status int, code string) Answer {
	return Answer{Status: status, Code: code, Words: ProviderWords}
}

// BadRequest is a 400 with these words.
func BadRequest(words string) Answer {
	return Answer{Status: http.StatusBadRequest, Code: "invalid_value", Words: words + " " + ProviderWords}
}

// TooLong is the refusal of an input beyond the model's context.
func TooLong() Answer {
	return Answer{Status: http.StatusBadRequest, Code: "context_length_exceeded", Words: "prompt is too long " + ProviderWords}
}

// UnknownParameter is the refusal of a parameter.
func UnknownParameter(name string) Answer {
	return Answer{
		Status: http.StatusBadRequest, Code: "unsupported_parameter", Param: name,
		Words: "Unsupported parameter: " + name + " " + ProviderWords,
	}
}

// RateLimited is a 429 that asks for a pause.
func RateLimited(after time.Duration) Answer {
	answer := Refuse(http.StatusTooManyRequests, "rate_limit_exceeded")
	answer.Header = http.Header{}
	if after%time.Second == 0 {
		answer.Header.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	} else {
		answer.Header.Set("Retry-After-Ms", strconv.FormatInt(after.Milliseconds(), 10))
	}
	return answer
}

// OutOfQuota is a 429 that no waiting mends.
func OutOfQuota() Answer {
	answer := Refuse(http.StatusTooManyRequests, "insufficient_quota")
	answer.Words = "You exceeded your current quota " + ProviderWords
	return answer
}

// HTML is a page in place of an answer, such as a proxy or a login sends.
func HTML(status int) Answer {
	return Answer{
		Status: status, ContentType: "text/html; charset=utf-8",
		Body: "<!doctype html><html><body>" + ProviderWords + "</body></html>",
	}
}

// Raw is this body as JSON, whatever it is.
func Raw(body string) Answer {
	return Answer{Status: http.StatusOK, ContentType: "application/json", Body: body}
}

// CutOff closes the connection in the middle of a valid answer.
func CutOff() Answer {
	answer := Facts("a fact that never arrives")
	answer.Cut = true
	return answer
}

// Dropped closes the connection without an answer.
func Dropped() Answer { return Answer{Drop: true} }
