import { Queue, Worker } from 'bullmq';
import { command, fail, n, range, ready, started, url } from './lib.mjs';

const { hostname: host, port } = new URL(url);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
if (command === 'enqueue') {
  const queue = new Queue('noop', { connection });
  for (let i = 0; i < n; i += 2000) {
    await queue.addBulk(range(i, Math.min(n, i + 2000)).map((k) => ({ name: 'noop', data: { k }, opts: { removeOnComplete: true } })));
  }
  await queue.close();
  process.exit(0);
}
const worker = new Worker('noop', async (job) => started(job.data.k), { connection, concurrency: 100 });
worker.on('error', fail);
worker.on('failed', (_, error) => fail(error));
await worker.waitUntilReady();
ready();
process.on('SIGTERM', () => process.exit(0));
