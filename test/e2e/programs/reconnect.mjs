// Reconnects many times, and prints the active resources and the heap growth.
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { filter, firstValueFrom, share } from 'rxjs';
import { tradeFeedEvents$ } from 'rx-trade-feed';

const [warmUp, reconnects] = process.argv.slice(2).map(Number);
const resources = () =>
  process
    .getActiveResourcesInfo()
    .filter((kind) => /Timeout|TCP|TLS|HTTP|Pipe/.test(kind))
    .sort();
// Each collection needs a separate turn, because a WeakRef keeps its target alive until the turn ends.
const heap = async () => {
  for (let i = 0; i < 8; i += 1) {
    await turn();
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
};

const warnings = [];
process.on('warning', (warning) => warnings.push(String(warning)));
// The first connection loads undici, which opens one of this process's outputs.
await import('undici');
const before = resources();
const backoff = { initialDelayMs: 1, maxDelayMs: 1 };
const opened$ = tradeFeedEvents$('market', { backoff }).pipe(
  filter((event) => event.type === 'opened'),
  share(),
);
const subscription = opened$.subscribe();
const nth = (n) => firstValueFrom(opened$.pipe(filter(({ connection }) => connection >= n)));

await nth(warmUp);
const heapBefore = await heap();
const { connection } = await nth(warmUp + reconnects);
const heapAfter = await heap();
subscription.unsubscribe();
for (let pauses = 0; pauses < 3_000 && resources().length > before.length; pauses += 1) await delay(10);
console.log(JSON.stringify({ connection, heapGrowth: heapAfter - heapBefore, before, after: resources(), warnings }));
