// River: enqueue URL N | work URL N, with lines of JSON as the other peers tell them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type Noop struct {
	K int `json:"k"`
}

func (Noop) Kind() string { return "noop" }

type tally struct {
	mutex       sync.Mutex
	seen        []bool
	count       int
	first, last float64
}

type Worker struct {
	river.WorkerDefaults[Noop]
	tally *tally
}

func (w *Worker) Work(_ context.Context, job *river.Job[Noop]) error {
	w.tally.mutex.Lock()
	defer w.tally.mutex.Unlock()
	w.tally.last = milliseconds()
	if w.tally.count == 0 {
		w.tally.first = w.tally.last
	}
	w.tally.count++
	if w.tally.seen[job.Args.K] {
		must(fmt.Errorf("job %d was started twice", job.Args.K))
	}
	w.tally.seen[job.Args.K] = true
	return nil
}

func milliseconds() float64 { return float64(time.Now().UnixNano()) / 1e6 }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tell(values map[string]any) {
	must(json.NewEncoder(os.Stdout).Encode(values))
}

func enqueue(ctx context.Context, pool *pgxpool.Pool, n int) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	must(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	must(err)
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), &river.Config{})
	must(err)
	jobs := make([]river.InsertManyParams, n)
	for k := range jobs {
		jobs[k] = river.InsertManyParams{Args: Noop{K: k}}
	}
	_, err = client.InsertManyFast(ctx, jobs)
	must(err)
}

func work(ctx context.Context, pool *pgxpool.Pool, n int) {
	tally := &tally{seen: make([]bool, n)}
	workers := river.NewWorkers()
	river.AddWorker(workers, &Worker{tally: tally})
	// As many at once as its own benchmark has, fetched as often as it allows.
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
		Workers:           workers,
	})
	must(err)
	must(client.Start(ctx))
	tell(map[string]any{"ready": milliseconds()})
	told := 0
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		tally.mutex.Lock()
		count, first, last := tally.count, tally.first, tally.last
		tally.mutex.Unlock()
		if count != told {
			told = count
			tell(map[string]any{"count": count, "first": first, "last": last})
		}
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	n, err := strconv.Atoi(os.Args[3])
	must(err)
	pool, err := pgxpool.New(ctx, os.Args[2])
	must(err)
	if os.Args[1] == "enqueue" {
		enqueue(ctx, pool, n)
	} else {
		work(ctx, pool, n)
	}
}
