// What the peers' programs share: NAME.mjs enqueue URL N | work URL N. `work` tells its first and last start of a handler, and
// how many there were, as lines of JSON; one that is started twice ends it.
export const [command, url, n] = [process.argv[2], process.argv[3], Number(process.argv[4])];
export const now = () => performance.timeOrigin + performance.now();

let count = 0, told = 0, first = 0, last = 0;
const seen = new Uint8Array(n);

export function started(i) {
  last = now();
  if (count++ === 0) first = last;
  if (seen[i]++) fail(`job ${i} was started twice`);
}

export function fail(what) {
  console.error(String(what));
  process.exit(1);
}

export function ready() {
  const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');
  tell({ ready: now() });
  setInterval(() => {
    if (count === told) return;
    told = count;
    tell({ count, first, last });
  }, 20).unref();
}

export const range = (from, to) => Array.from({ length: to - from }, (_, k) => from + k);
