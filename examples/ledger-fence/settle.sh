#!/bin/sh
# A job's body that books into a database of its own, so that no step is booked twice whatever
# happens to its owner: killed, paused for an hour, taken over. Run by matins (jobs.yaml); the fence's
# table and statements are those of `matins fence sql --dialect sqlite`.
set -eu
ledger=${LEDGER:-ledger.db}
steps=${STEPS:-5}

sql() {
  # A statement that fails ends sqlite3, and what was not committed is rolled back.
  sqlite3 -batch -bail -cmd '.timeout 10000' -cmd '.parameter init' \
    -cmd ".parameter set :job \"'$MATINS_JOB'\"" -cmd ".parameter set :period \"'$MATINS_PERIOD'\"" \
    -cmd ".parameter set :generation ${MATINS_GENERATION:-1}" \
    -cmd ".parameter set :fence $MATINS_FENCE" -cmd ".parameter set :step ${step:-0}" "$ledger"
}

# 1. Raise the fence, and commit that, before anything is read. The answer is the last step that was
#    committed; no answer: a newer owner was here.
done_steps=$(sql <<'SQL'
INSERT INTO matins_fence AS f (job, period, generation, fence, checkpoint)
VALUES (:job, :period, :generation, :fence, 0)
ON CONFLICT (job, period) DO UPDATE SET
  checkpoint = CASE WHEN f.generation = excluded.generation THEN f.checkpoint ELSE 0 END,
  generation = excluded.generation, fence = excluded.fence
WHERE f.fence <= excluded.fence RETURNING checkpoint;
SQL
)
[ -n "$done_steps" ] || { echo "a newer owner has $MATINS_PERIOD; nothing was booked" >&2; exit 75; }

echo "begins after step $done_steps"

# 2. Each step is one transaction: the fence, the step's number, and the booking. The effect's row
#    has no generation: money that a generation before this one moved is not moved again.
step=$done_steps
while [ "$step" -lt "$steps" ]; do
  # Where a test wants an owner that sleeps in the midst of its work.
  if [ "${PAUSE_AFTER:-}" = "$step" ]; then read -r _; fi
  step=$((step + 1))
  new=$(sql <<'SQL'
CREATE TEMP TABLE must_be_one (changed INTEGER CHECK (changed = 1));
BEGIN IMMEDIATE;
UPDATE matins_fence SET checkpoint = :step
WHERE job = :job AND period = :period AND fence = :fence AND checkpoint = :step - 1;
INSERT INTO must_be_one SELECT changes();
INSERT INTO matins_effect (job, period, step, fence) VALUES (:job, :period, :step, :fence) ON CONFLICT DO NOTHING;
INSERT INTO booking (period, step, fence) SELECT :period, :step, :fence WHERE changes() = 1;
SELECT changes();
COMMIT;
SQL
  ) || { echo "step $step refused: a newer owner has $MATINS_PERIOD" >&2; exit 75; }
  if [ "$new" = 1 ]; then echo "step $step booked"; else echo "step $step was booked before"; fi
done
