package mem0

import (
	"time"
)

// column says a comparison with an instant of some column.
type column func(op string, at time.Time) any

func columnOf(field string) column {
	return func(op string, at time.Time) any { return native{field: native{op: at.UTC().Format(time.RFC3339Nano)}} }
}

// whenSaid compares when it was said: that is the date of the event, or without one the time of the write.
func whenSaid(op string, at time.Time) any {
	return native{"OR": []any{
		columnOf("event_date")(op, at),
		native{"AND": []any{native{"event_date": nil}, columnOf("created_at")(op, at)}},
	}}
}

// instants reads comparisons with instants and days. A day is all of it: on a day means within it, after a day means
// not before it has ended.
func instants(value any, of column) (any, error) {
	return timed(value, func(op string, m moment) any {
		if !m.isDay {
			return of(op, m.at)
		}
		switch op {
		case "gt":
			return of("gte", m.end())
		case "gte":
			return of("gte", m.at)
		case "lt":
			return of("lt", m.at)
		case "lte":
			return of("lt", m.end())
		}
		return all([]any{of("gte", m.at), of("lt", m.end())})
	})
}

// expiries reads comparisons with the last day of something. What expires on a day is there until it has ended.
func expiries(value any) (any, error) {
	of := columnOf("expires_at")
	if value == every {
		return native{"expires_at": native{"ne": nil}}, nil
	}
	if value == nil {
		return native{"expires_at": nil}, nil
	}
	return timed(value, func(op string, m moment) any {
		if !m.isDay {
			return of(op, m.at)
		}
		switch op {
		case "gt":
			return of("gt", m.end())
		case "gte":
			return of("gt", m.at)
		case "lt":
			return of("lte", m.at)
		case "lte":
			return of("lte", m.end())
		}
		return all([]any{of("gt", m.at), of("lte", m.end())})
	})
}

// timed reads a time, or an object of operators with times. Say says eq, gt, gte, lt and lte.
func timed(value any, say func(op string, m moment) any) (any, error) {
	operators, isObject := value.(map[string]any)
	if !isObject {
		operators = native{"eq": value}
	}
	if len(operators) == 0 {
		return nil, badFilter("at least one operator")
	}
	var parts []any
	for _, op := range sorted(operators) {
		values := []any{operators[op]}
		if list, isList := operators[op].([]any); op == "in" {
			if !isList || len(list) == 0 {
				return nil, badFilter("in with a list of times")
			}
			values = list
		}
		said := make([]any, len(values))
		for i, one := range values {
			m, ok := momentOf(one)
			if !ok {
				return nil, badFilter(momentRule)
			}
			switch op {
			case "eq", "gt", "gte", "lt", "lte":
				said[i] = say(op, m)
			case "in":
				said[i] = say("eq", m)
			case "ne":
				said[i] = not(say("eq", m))
			default:
				return nil, badFilter("times with eq, ne, in, gt, gte, lt, lte")
			}
		}
		if op == "in" && len(said) > 1 {
			said = []any{native{"OR": said}}
		}
		parts = append(parts, said[0])
	}
	return all(parts), nil
}
