// @ts-check
// Runs a user's pipeline and a slow consumer side by side on one connection, at a high rate, with an outage in the middle, and holds
// what they say against what the numbers of the frames say.
//
//   npm run soak -- [--seconds 60] [--rate 50000] [--window 1000] [--exact]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import * as t from 'io-ts';
import { endWith, ignoreElements, merge, lastValueFrom, takeUntil, tap, timer } from 'rxjs';
import {
  decodeWith,
  frames,
  mergeMapBounded,
  shareFeed,
  tradeFeedEvents$,
  tumblingWindow,
  whereBytes,
} from 'rx-trade-feed';
import { Truth } from './truth.mjs';
import { measured, verdicts } from './verdicts.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '50000' },
    window: { type: 'string', default: '1000' },
    // Without what depends on how busy the machine is.
    exact: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const rate = Number(values.rate);
const windowMs = Number(values.window);
const outageMs = Math.min(2_500, seconds * 200);

const child = fork(new URL('./service.mjs', import.meta.url), [String(rate)]);
/** @type {import('rx-trade-feed').TradeFeedOptions} */
const options = (await once(child, 'message'))[0];

const Batch = t.type({
  batch: t.number,
  trades: t.array(t.type({ market: t.string, price: t.string, amount: t.string })),
});
const needle = '"market":"ETH-USD"';

const truth = new Truth(needle, windowMs);
/** @type {import('rx-trade-feed').FeedWindow<import('rx-trade-feed').Decoded<t.TypeOf<typeof Batch>>>[]} */
const windows = [];
const slow = { processed: 0, dropped: 0, reports: 0 };
/** @type {number[]} */
const memoryMb = [];

const feed$ = tradeFeedEvents$('market', { ...options, backoff: { initialDelayMs: 100, maxDelayMs: 400 } }).pipe(
  takeUntil(timer(seconds * 1_000)),
  shareFeed({ lingerMs: 0 }),
);

// The pipeline under test.
const windows$ = feed$.pipe(
  whereBytes(needle),
  decodeWith(Batch, { onInvalid: 'error' }),
  tumblingWindow({ lengthMs: windowMs }),
  // Only the figures are kept: sixty seconds of frames would be the test's own leak.
  tap((window) => windows.push({ ...window, frames: [] })),
);

// A consumer that is slower than the feed by far.
const slow$ = feed$.pipe(
  frames(),
  mergeMapBounded(() => timer(1).pipe(tap(() => (slow.processed += 1))), {
    concurrency: 2,
    capacity: rate / 10,
    onDrop: ({ dropped }) => {
      slow.dropped += dropped;
      slow.reports += 1;
    },
  }),
);

// What came, counted by the numbers of the frames.
const counted$ = feed$.pipe(tap((event) => truth.see(event)));

const outage$ = merge(
  timer(seconds * 500).pipe(tap(() => child.send('outage'))),
  timer(seconds * 500 + outageMs).pipe(tap(() => child.send('restore'))),
);

const startedAt = Date.now();
const progress$ = timer(1_000, 1_000).pipe(
  tap((second) => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    memoryMb.push((heapUsed + external) / 2 ** 20);
    if (second % 5 === 4 || seconds < 10)
      console.log(
        `${String(second + 1).padStart(3)} s  ${truth.frames} frames  memory ${memoryMb.at(-1)?.toFixed(1)} MB  ` +
          `${windows.length} windows, ${windows.filter(({ complete }) => !complete).length} incomplete  ` +
          `slow: ${slow.processed} processed, ${slow.dropped} dropped`,
      );
  }),
);

const cpuBefore = process.cpuUsage();
const aside = merge(outage$, progress$).subscribe();
// It ends when the slow consumer has worked off what waited for it.
await lastValueFrom(merge(slow$, counted$, windows$).pipe(ignoreElements(), endWith(undefined)));
aside.unsubscribe();
const cpu = process.cpuUsage(cpuBefore);
child.disconnect();
await once(child, 'exit');

const elapsedMs = Date.now() - startedAt;
console.log(
  `${truth.frames} frames in ${(elapsedMs / 1_000).toFixed(1)} s (${Math.round((truth.frames * 1_000) / elapsedMs)}/s), ` +
    `${truth.missing} missing in the outage; ${((cpu.user + cpu.system) / 10 / elapsedMs).toFixed(0)} % of a core; ` +
    `${slow.processed} processed + ${slow.dropped} dropped in ${slow.reports} reports; disconnects: ${truth.disconnects.join(', ')}`,
);
const expected = { frames: seconds * rate, missing: (rate * outageMs) / 1_000 };
const results = [
  ...verdicts({ truth, windows, slow }),
  ...(values.exact ? [] : measured({ truth, memoryMb, expected })),
];
for (const { ok, what } of results) console.log(`${ok ? '✓' : '✗'} ${what}`);
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;
