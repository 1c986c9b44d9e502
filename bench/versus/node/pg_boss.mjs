import { PgBoss } from 'pg-boss';
import { command, fail, n, range, ready, started, url } from './lib.mjs';

const boss = new PgBoss({ connectionString: url, ...(command === 'enqueue' ? { supervise: false, schedule: false } : {}) });
boss.on('error', fail);
await boss.start();
if (command === 'enqueue') {
  await boss.createQueue('noop');
  for (let i = 0; i < n; i += 5000) {
    await boss.insert('noop', range(i, Math.min(n, i + 5000)).map((k) => ({ data: { k }, startAfter: new Date(Date.now() - 1000) })));
  }
  await boss.stop({ graceful: false });
  process.exit(0);
}
// The largest batches, fetched again at once while they are full, by two workers.
await boss.work('noop', { batchSize: 1000, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, localConcurrency: 2 },
  async (jobs) => { for (const job of jobs) started(job.data.k); });
ready();
process.on('SIGTERM', async () => { await boss.stop({ graceful: false }); process.exit(0); });
