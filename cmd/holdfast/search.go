package main

import (
	"fmt"
	"net/http"
)

type searchCommand struct {
	remote
	scoped
	Query    string  `arg:"" help:"What is asked."`
	Limit    int     `default:"10" env:"-" help:"How many memories at most."`
	MinScore float64 `name:"min-score" default:"0" env:"-" help:"Leave out what scores below, 0 to 1."`
	Mode     string  `enum:"hybrid,lexical,semantic" default:"hybrid" env:"-" help:"hybrid, lexical or semantic."`
}

func (c *searchCommand) Run(s *session) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	body := map[string]any{"query": c.Query, "limit": c.Limit, "min_score": c.MinScore, "mode": c.Mode}
	c.into(body)
	got, err := api.call(s.ctx, http.MethodPost, "/v1/memories/search", "", body)
	if err != nil {
		return err
	}
	if s.json {
		return s.raw(got.body)
	}
	var found struct {
		Results []struct {
			ID     string  `json:"id"`
			Memory string  `json:"memory"`
			Score  float64 `json:"score"`
		} `json:"results"`
	}
	if err := got.read(&found); err != nil {
		return err
	}
	if len(found.Results) == 0 {
		return s.show(nil, "Nothing found.\n")
	}
	rows := make([]string, len(found.Results))
	for i, m := range found.Results {
		rows[i] = fmt.Sprintf("%.2f\t%s\t%s", m.Score, m.ID, m.Memory)
	}
	return s.table("score\tid\tmemory", rows)
}
