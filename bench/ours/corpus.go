package ours

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/internal/memory"
	"github.com/holdfast-memory/holdfast/internal/model/offline"
)

// Question finds something in every corpus.
const Question = "word3 word17 word40"

// corpusStep is how many records one COPY takes.
const corpusStep = 10_000

// variety is how many different texts a corpus has: cutting and embedding a million would take longer than the search.
const variety = 5_000

// said is one text with its projections.
type said struct {
	text   string
	key    memory.ContentKey
	terms  memory.Terms
	vector []byte
}

// Corpus stores records of a tenant with their terms and vectors: n for each of the users.
func Corpus(ctx context.Context, databaseURL string, tenant Tenant, names []string, n int) (err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return errors.New("fill with records: cannot connect") // its error can quote the URL with its password
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	texts, err := sayings(ctx, min(variety, n*len(names)))
	if err != nil {
		return err
	}
	model := offline.NewEmbedder().Model()
	var records, terms, vectors [][]any
	flush := func() error {
		err := copyAll(ctx, conn, records, terms, vectors)
		records, terms, vectors = records[:0], terms[:0], vectors[:0]
		return err
	}
	at := time.Now().Add(-time.Hour)
	for i := range n * len(names) {
		name, s := names[i/n], texts[i%len(texts)]
		lane := memory.Scope{UserID: name}.Lane()
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make record id: %w", err)
		}
		records = append(records, []any{id, tenant.ID, id, name, lane[:], s.text, s.key[:], at, at, at, at, at})
		terms = append(terms, []any{id, tenant.ID, 1, s.key[:], s.terms.Terms, s.terms.Counts, s.terms.Length})
		vectors = append(vectors, []any{id, tenant.ID, 1, s.key[:], model, s.vector, at})
		if len(records) == corpusStep {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "VACUUM (ANALYZE)"); err != nil {
		return fmt.Errorf("fill with records: %w", err)
	}
	return nil
}

func copyAll(ctx context.Context, conn *pgx.Conn, records, terms, vectors [][]any) error {
	for _, c := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{
		{"memories", []string{"id", "workspace_id", "task_id", "user_id", "lane", "text", "content_key", "accepted_at", "said_at", "valid_from", "created_at", "updated_at"}, records},
		{"memory_terms", []string{"memory_id", "workspace_id", "version", "content_key", "terms", "counts", "length"}, terms},
		{"memory_vectors", []string{"memory_id", "workspace_id", "version", "content_key", "model", "vector", "made_at"}, vectors},
	} {
		if _, err := conn.CopyFrom(ctx, pgx.Identifier{c.table}, c.columns, pgx.CopyFromRows(c.rows)); err != nil {
			return fmt.Errorf("fill %s: %w", c.table, err)
		}
	}
	return nil
}

// sayings are texts of common and rare words, as people's facts have.
func sayings(ctx context.Context, n int) ([]said, error) {
	r := rand.New(rand.NewPCG(1, 1))
	embedder := offline.NewEmbedder()
	made := make([]said, n)
	for i := range made {
		words := make([]string, 6+r.IntN(10))
		for j := range words {
			words[j] = fmt.Sprintf("word%d", int(math.Exp(r.Float64()*math.Log(5000)))) // few words are frequent
		}
		text := "She told us that " + strings.Join(words, " ") + " in the morning"
		embedding, err := embedder.Embed(ctx, []string{text})
		if err != nil {
			return nil, fmt.Errorf("embed: %w", err)
		}
		var vector []byte
		for _, x := range embedding.Vectors[0] {
			vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(x))
		}
		made[i] = said{text, memory.KeyOf(text), memory.TermsOf(text), vector}
	}
	return made, nil
}
