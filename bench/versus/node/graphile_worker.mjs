import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import { command, fail, n, range, ready, started, url } from './lib.mjs';

const logger = new Logger(() => (level, message) => { if (level === 'error') console.error(message); });
if (command === 'enqueue') {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  for (let i = 0; i < n; i += 10000) {
    await utils.addJobs(range(i, Math.min(n, i + 10000)).map((k) => ({ identifier: 'noop', payload: { k }, runAt: new Date(Date.now() - 1000) })));
  }
  await utils.release();
} else {
  // Its documentation's way to most throughput: a local queue, and completions in batches.
  const worker = { connectionString: url, logger, concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
  const runner = await run({ preset: { worker }, taskList: { noop: async ({ k }) => started(k) }, crontab: '', logger });
  runner.events.on('job:error', ({ error }) => fail(error));
  ready();
  await runner.promise;
}
