package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-memory/holdfast/bench/load"
	"github.com/holdfast-memory/holdfast/bench/ours"
	"github.com/holdfast-memory/holdfast/bench/peers"
)

// pace is how many commands a second the latency rows are about.
const pace = 1000

// pathCases are the rows about whole tasks, ours and those of the peers that do the same.
func (r *run) pathCases() []one {
	finish := func(c *ours.Callers) load.Operation { return c.Finish }
	var cases []one
	for _, n := range []int{16, 64, 256} {
		cases = append(cases,
			one{fmt.Sprintf("path_%d", n), perSecond, func(ctx context.Context) (sample, error) {
				s, err := r.called(ctx, r.whole, n, finish)
				if err == nil {
					err = ours.Balanced(ctx, r.whole.url)
				}
				return s, err
			}},
			one{fmt.Sprintf("river_%d", n), perSecond, r.river(func(ctx context.Context, p *peers.River) (sample, error) {
				return r.closed(ctx, n, p.Finish)
			})})
	}
	return append(cases,
		one{"dbos_64", perSecond, r.dbos},
		one{"serial", "ms", func(ctx context.Context) (sample, error) { return p50(r.called(ctx, r.whole, 1, finish)) }},
		one{"paced", "ms", func(ctx context.Context) (sample, error) { return r.paced(ctx) }},
		one{"river_paced", "ms", r.river(func(ctx context.Context, p *peers.River) (sample, error) {
			return r.open(ctx, p.Finish)
		})},
		one{"flood", perSecond, r.flood})
}

// p50 makes the median the first number.
func p50(s sample, err error) (sample, error) {
	if err == nil {
		s["rate"], s[value] = s[value], s["p50"]
	}
	return s, err
}

// mostPaced bounds what is under way at a fixed rate; who is slower than that shows it as latency.
const mostPaced = 256

func (r *run) paced(ctx context.Context) (sample, error) {
	c, err := r.whole.site.NewCallers(ctx, r.whole.tenants, mostPaced)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return r.open(ctx, c.Finish)
}

// open measures at the fixed rate; reached is the part of it that was kept up.
func (r *run) open(ctx context.Context, do load.Operation) (sample, error) {
	result, err := load.Open(ctx, pace, mostPaced, r.plan.Warm, r.plan.Spell, do)
	if err != nil {
		return nil, err
	}
	s, err := p50(numbers(result), nil)
	s["reached"] = s["rate"] / pace
	return s, err
}

// river opens River in an empty database of its own for one case.
func (r *run) river(use func(context.Context, *peers.River) (sample, error)) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return inDatabase(ctx, r, "river", func(databaseURL string) (s sample, err error) {
			p, err := peers.OpenRiver(ctx, databaseURL, ours.Thousand, ours.CommandBytes, 64)
			if err != nil {
				return nil, err
			}
			s, err = use(ctx, p)
			if closed := p.Close(ctx); err == nil {
				err = closed
			}
			return s, err
		})
	}
}

func (r *run) dbos(ctx context.Context) (sample, error) {
	return inDatabase(ctx, r, "dbos", func(databaseURL string) (s sample, err error) {
		p, err := peers.OpenDBOS(ctx, databaseURL, ours.Thousand, ours.CommandBytes)
		if err != nil {
			return nil, err
		}
		s, err = r.closed(ctx, 64, p.Finish)
		if closed := p.Close(ctx); err == nil {
			err = closed
		}
		return s, err
	})
}

// inDatabase runs a peer in an empty database, which is dropped afterwards.
func inDatabase(ctx context.Context, r *run, name string, use func(databaseURL string) (sample, error)) (sample, error) {
	r.peerNo++
	name = fmt.Sprintf("%s_%d", name, r.peerNo)
	databaseURL, err := r.rig.Database(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := use(databaseURL)
	if dropped := r.rig.Drop(ctx, name); err == nil {
		err = dropped
	}
	return s, err
}

// flood accepts without waiting for ends, and counts the ends meanwhile. What is left is worked off before the next
// case.
func (r *run) flood(ctx context.Context) (sample, error) {
	conn, err := pgx.Connect(ctx, r.whole.url)
	if err != nil {
		return nil, fmt.Errorf("count ends: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // read only
	before, err := counted(ctx, conn, "completed_at IS NOT NULL")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s, err := r.called(ctx, r.whole, 64, func(c *ours.Callers) load.Operation { return c.Accept })
	if err != nil {
		return nil, err
	}
	after, err := counted(ctx, conn, "completed_at IS NOT NULL")
	if err != nil {
		return nil, err
	}
	s["accepted"], s[value] = s[value], float64(after-before)/time.Since(began).Seconds()
	return s, drained(ctx, conn)
}

func counted(ctx context.Context, conn *pgx.Conn, which string) (int64, error) {
	var n int64
	if err := conn.QueryRow(ctx, "SELECT /* bench */ count(*) FROM tasks WHERE "+which).Scan(&n); err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return n, nil
}

// drainBound is what a backlog of a few seconds may take.
const drainBound = 3 * time.Minute

// drained waits until no task is left to do.
func drained(ctx context.Context, conn *pgx.Conn) error {
	deadline := time.Now().Add(drainBound)
	for {
		left, err := counted(ctx, conn, "completed_at IS NULL")
		switch {
		case err != nil:
			return err
		case left == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d tasks are not done after %s", left, drainBound)
		}
		select {
		case <-time.After(100 * time.Millisecond): // counting reads the whole table
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
