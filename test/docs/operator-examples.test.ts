/** @lane processes */
import { describe, expect, it } from '@jest/globals';
import { distinct, filter, mergeMap, tap, timer } from 'rxjs';
import { marketBatches$ } from 'rx-trade-feed/testing';
import { commentFencesOf, filesIn } from './fences.js';
import { type FenceService, itPrints } from './run-fences.js';

/** A line that each example in the operators' comments prints. */
const prints: Readonly<Record<string, RegExp>> = {
  'conflate.ts': /^\{"batch":\d+,.* and \d+ older ones$/,
  'connection-status.ts': /^next attempt in -?\d+ ms$/,
  'count-window.ts': /^1000 frames in \d+ ms (true|false)$/,
  'decode-either.ts': /^wrong at \/n$/,
  'decode/decode-failure.ts': /^\[ \{ path: '\/n', message: 'expected number' \} \]$/,
  'decode-with.ts': /^0x1$/,
  'items/item.ts': /^1$/,
  'items/item.ts, 2': /^1\.1, the newest of 3$/,
  'distinct-recent.ts': /^a\nb\nc$/,
  'feed-stats.ts': /^ {2}totalFrames: \d+,$/,
  'frames.ts': /^\{"batch":\d+,/,
  'freshness.ts': /^stale since 20\d\d-.*Z$/,
  'gaps.ts': /^frames may be missing: access-expired$/,
  'log-events.ts': /^Connected to market \(connection 1\)$/,
  'merge-map-bounded.ts': /^997 dropped\n999\n1000$/,
  'node/to-readable.ts': /^10 lines written$/,
  'bounded/bounded-queue.ts': /^The consumer is slower than the feed: 1 values/,
  'share-feed.ts': /^frames may be missing: access-expired$/,
  'sliding-window.ts': /^20\d\d-.*Z \d+(\.\d)? (true|false)$/,
  'to-async-iterable.ts': /^\{"batch":\d+,/,
  'tumbling-window.ts': /^(at least )?\d+ bytes$/,
  'values.ts': /^3000$/,
  'values.ts, 2': /^3000$/,
  'where-bytes.ts': /^\{"to":"0xb2"\}$/,
  'where-field.ts': /^\{"from":"0xa1","to":"0xB2"\}$/,
};

const folder = 'src/operators';
const examples = filesIn(folder, '.ts').flatMap((file) =>
  commentFencesOf(file)
    .filter(({ code }) => code.includes('import '))
    .map(({ code }, n) => [`${file.slice(folder.length + 1)}${n === 0 ? '' : `, ${n + 1}`}`, code] as const),
);

/** Each example goes through one outage, soon after it first connects. */
const meanwhile: FenceService['meanwhile'] = (service, accounts) =>
  service.events$
    .pipe(
      filter((event) => event.type === 'handshake-accepted'),
      distinct(({ account }) => account),
      mergeMap(({ account }) => timer(300).pipe(tap(() => accounts.find(({ id }) => id === account)?.expireAccess()))),
    )
    .subscribe();

it('the example in the comment of every operator is in the list of this test', () => {
  expect([...new Set(examples.map(([name]) => name))].sort()).toEqual(Object.keys(prints).sort());
});

describe('the example in the comment of', () =>
  itPrints(
    '%s prints the expected line',
    examples.map(([name, code]) => ({ name, code, expected: prints[name] ?? /./ })),
    { sources: { market: marketBatches$({ rate: 1_000, batchSize: 1 }) }, meanwhile },
  ));
