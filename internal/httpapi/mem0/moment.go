package mem0

import (
	"encoding/json"
	"math"
	"time"
)

const (
	day        = 24 * time.Hour
	dateLayout = time.DateOnly
	// latestSecond is the last one of the year 9999.
	latestSecond = 253_402_300_799
)

// moment is an instant, or a whole day in UTC.
type moment struct {
	at    time.Time
	isDay bool
}

const momentRule = "a date like 2026-01-31, an RFC 3339 time, or seconds since 1970"

// momentOf reads a date, a time (in UTC if it says no other) or seconds since 1970.
func momentOf(value any) (moment, bool) {
	switch v := value.(type) {
	case json.Number:
		seconds, err := v.Float64()
		return secondsOf(seconds), err == nil && math.Abs(seconds) <= latestSecond
	case string:
		if at, err := time.Parse(dateLayout, v); err == nil {
			return moment{at, true}, true
		}
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
			if at, err := time.Parse(layout, v); err == nil {
				return moment{at: at.UTC()}, true
			}
		}
	}
	return moment{}, false
}

// secondsOf is the instant so many seconds after 1970, to the microsecond.
func secondsOf(seconds float64) moment {
	whole, fraction := math.Modf(seconds)
	return moment{at: time.Unix(int64(whole), 0).UTC().Add(time.Duration(math.Round(fraction*1e6)) * time.Microsecond)}
}

// end is the first instant after a day, and an instant itself.
func (m moment) end() time.Time {
	if m.isDay {
		return m.at.Add(day)
	}
	return m.at
}

// text is how a command reads an instant.
func text(at time.Time) *string {
	written := at.UTC().Format(time.RFC3339Nano)
	return &written
}

// expiryOf answers when something expires whose last day, or last instant, is given.
func expiryOf(b body) (*string, error) {
	given, err := b.text("expiration_date")
	if err != nil || given == nil {
		return nil, err
	}
	last, ok := momentOf(*given)
	if !ok {
		return nil, bad("/expiration_date", "a date like 2026-01-31 or an RFC 3339 time")
	}
	return text(last.end()), nil
}

// lastDay is the last day on which something is there that expires then.
func lastDay(expires *time.Time) *string {
	if expires == nil {
		return nil
	}
	written := expires.UTC().Add(-time.Microsecond).Format(dateLayout)
	return &written
}
