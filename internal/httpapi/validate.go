package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-memory/holdfast/internal/command"
	"github.com/holdfast-memory/holdfast/internal/fault"
)

// validate holds the request against the document. The library's errors quote the caller, so only their place
// and the rule of the document are taken over.
func validate(c echo.Context, op *operation) error {
	query, err := checkQuery(c.Request().URL.RawQuery, op)
	if err != nil {
		return err
	}
	path := map[string]string{}
	for i, name := range c.ParamNames() {
		path[name] = c.ParamValues()[i]
	}
	err = openapi3filter.ValidateRequest(c.Request().Context(), &openapi3filter.RequestValidationInput{
		Request: c.Request(), PathParams: path, QueryParams: query, Route: op.route,
		Options: &openapi3filter.Options{
			AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc, // the guard has authenticated already
			SkipSettingDefaults: true,                                  // the command fills in defaults
			ExcludeRequestBody:  op.streams,                            // its handler reads it
		},
	})
	if err == nil {
		return nil
	}
	return refusal(err)
}

// checkQuery reads the query and refuses what the document doesn't name, repeats, and text that is none.
func checkQuery(raw string, op *operation) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, inQuery("", "a well-formed query")
	}
	for name, values := range query {
		switch {
		case !op.query[name]:
			return nil, inQuery("", "no unknown parameters")
		case len(values) > 1:
			return nil, inQuery("/"+name, "given once")
		case !utf8.ValidString(values[0]) || strings.ContainsRune(values[0], 0):
			return nil, inQuery("/"+name, "valid UTF-8 without NUL")
		}
	}
	return query, nil
}

// inQuery is a fault of a query parameter.
func inQuery(pointer, rule string) error { return in("query", pointer, rule) }

func in(place, pointer, rule string) error {
	f := fault.At(fault.InvalidRequest, pointer, rule)
	f.Details = map[string]any{"in": place}
	return f
}

// refusal turns an error of the validator into a fault without any of its text.
func refusal(err error) error {
	rule := "the form of the contract"
	var pointer []string
	if schema, ok := errors.AsType[*openapi3.SchemaError](err); ok {
		rule, pointer = ruleOf(schema), schema.JSONPointer()
	}
	request, ok := errors.AsType[*openapi3filter.RequestError](err)
	if ok && request.Parameter != nil {
		if parse, ok := errors.AsType[*openapi3filter.ParseError](err); ok && parse != nil {
			rule = typeOf(request.Parameter.Schema.Value)
		}
		if errors.Is(err, openapi3filter.ErrInvalidEmptyValue) {
			rule = typeOf(request.Parameter.Schema.Value) + ", not empty"
		}
		return in(request.Parameter.In, "/"+request.Parameter.Name, rule)
	}
	return fault.At(fault.InvalidRequest, command.SafePointer(pointer), rule)
}

// ruleOf says in the document's words what a value has to be.
func ruleOf(err *openapi3.SchemaError) string {
	switch schema := err.Schema; err.SchemaField {
	case "type":
		return typeOf(schema)
	case "required":
		return "required"
	case "properties":
		return "no unknown members"
	case "nullable":
		return "not null"
	case "enum":
		values := make([]string, len(schema.Enum))
		for i, value := range schema.Enum {
			values[i] = fmt.Sprint(value)
		}
		return "one of " + strings.Join(values, ", ")
	case "minimum":
		return fmt.Sprintf("at least %g", *schema.Min)
	case "maximum":
		return fmt.Sprintf("at most %g", *schema.Max)
	case "maxLength":
		return fmt.Sprintf("at most %d characters", *schema.MaxLength)
	}
	return "the form of the contract"
}

func typeOf(schema *openapi3.Schema) string {
	for name, words := range map[string]string{
		openapi3.TypeString: "a string", openapi3.TypeInteger: "an integer", openapi3.TypeNumber: "a number",
		openapi3.TypeBoolean: "true or false", openapi3.TypeObject: "an object", openapi3.TypeArray: "an array",
	} {
		if schema.Type.Is(name) {
			return words
		}
	}
	return "the form of the contract"
}
