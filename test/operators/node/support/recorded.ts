import fc from 'fast-check';
import { lastValueFrom, toArray } from 'rxjs';
import {
  type FailureFacts,
  Frame,
  type Gap,
  type Replayed,
  replay$,
  createTradeFeedError,
} from '../../../../src/index.js';
import { copyFailure } from '../../../../src/protocol/failures/trade-feed-error.js';
import { character } from '../../../support/character.js';

/** Creates a frame that was received at a time in ms. */
export const frameAt = (ms: number, payload: string | Buffer = `at ${ms}`, connection = 1): Frame =>
  new Frame('market', Buffer.from(payload), typeof payload !== 'string', ms, connection);

/** Creates a gap between two times. */
export const gapBetween = (
  from: number,
  to: number,
  facts: FailureFacts = { stage: 'stream', closeCode: 1006 },
): Gap => ({
  type: 'gap',
  from,
  to,
  durationMs: to - from,
  failure: createTradeFeedError({ endedAt: from, ...facts }),
});

/** Returns the recorded part of an event, as plain data to compare. */
export const essence = (event: Frame | Gap): object => {
  if (event.type === 'gap') {
    const { from, to, durationMs, failure } = event;
    return { from, to, durationMs, failure: failure.toJSON(), isError: failure instanceof Error };
  }
  const { feed, connection, receivedAt, isBinary, data } = event;
  return { feed, connection, receivedAt, isBinary, data: data.toString('hex') };
};

/** Replays a whole recording at speed Infinity. */
export const replayed = (path: string, options: Parameters<typeof replay$>[1] = {}): Promise<Replayed[]> =>
  lastValueFrom(replay$(path, { speed: Infinity, ...options }).pipe(toArray()));

/** Returns the payloads of a recording, with `gap` for each gap. */
export const payloadsOf = async (path: string): Promise<string[]> =>
  (await replayed(path)).map((event) => (event.type === 'gap' ? 'gap' : event.text()));

const times = fc.integer({ min: 0, max: 4e12 });
const payloads = fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ unit: character, maxLength: 40 }).map((text) => Buffer.from(text)),
  fc.json().map((text) => Buffer.from(text)),
);

const frames = fc
  .tuple(
    fc.constantFrom('market' as const, 'raw' as const),
    payloads,
    fc.boolean(),
    times,
    fc.integer({ min: 1, max: 9 }),
  )
  .map((fields) => new Frame(...fields));

const facts: fc.Arbitrary<FailureFacts> = fc.oneof(
  fc.record({
    stage: fc.constant('stream' as const),
    closeCode: fc.integer({ min: 1000, max: 4999 }),
    reason: fc.string({ maxLength: 20 }),
  }),
  fc.record({ stage: fc.constant('ticket' as const), status: fc.constantFrom(401, 429, 503), retryAfterMs: fc.nat() }),
  fc.record({
    stage: fc.constant('stream' as const),
    code: fc.constant('connection-stalled' as const),
    uptimeMs: fc.nat(),
  }),
);
const gaps = fc.tuple(times, times, facts, fc.option(facts)).map(([from, to, facts, before]): Gap => {
  const previous = before === null ? undefined : createTradeFeedError({ ...before, endedAt: from });
  const failure = copyFailure(createTradeFeedError({ ...facts, endedAt: from }), { previous });
  return { type: 'gap', from, to, durationMs: to - from, failure };
});

/** Any sequence of frames and gaps. */
export const sequences: fc.Arbitrary<(Frame | Gap)[]> = fc.array(fc.oneof({ arbitrary: frames, weight: 5 }, gaps), {
  maxLength: 30,
});
