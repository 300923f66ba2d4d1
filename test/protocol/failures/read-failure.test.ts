import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import type { Stage, Verdict } from '../../../src/protocol/failures/failure-code.js';
import { copyFailure, TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { readFailure } from '../../../src/protocol/failures/read-failure.js';

const before = createTradeFeedError({ stage: 'ticket', status: 503, retryAfterMs: 2_000, endedAt: 400 });
const facts = { uptimeMs: 5, framesReceived: 6, endedAt: 500, cause: new Error('below') };
const failure = copyFailure(
  createTradeFeedError({ stage: 'stream', closeCode: 4003, reason: 'access expired', ...facts }),
  {
    previous: before,
  },
);

const written = (error: TradeFeedError): unknown => JSON.parse(JSON.stringify(error));

describe('readFailure', () => {
  it.each([failure, before, copyFailure(failure, { verdict: 'stop', advice: 'Do.', previous: undefined })])(
    'returns the failure that was written: $code',
    (error) => {
      const read = readFailure(written(error));
      expect(read).toBeInstanceOf(TradeFeedError);
      expect(read).toBeInstanceOf(Error);
      expect(read.toJSON()).toEqual({ ...error.toJSON(), ...(error.previous && { previous: read.previous }) });
      expect(read.previous?.toJSON()).toEqual(error.previous?.toJSON());
      expect(read.cause).toBeUndefined();
    },
  );

  it('shifts the times by the difference of the clocks, also in the previous failure', () => {
    expect(readFailure(written(failure), 1_000)).toMatchObject({
      endedAt: 1_500,
      uptimeMs: 5,
      previous: { endedAt: 1_400 },
    });
    expect(readFailure(written(failure), -100)).toMatchObject({ endedAt: 400, previous: { endedAt: 300 } });
  });

  it('accepts a code of a newer version, and leaves out unknown fields and fields of the wrong type', () => {
    const read = readFailure({
      ...failure.toJSON(),
      code: 'new-code',
      previous: undefined,
      isNew: true,
      status: '401',
      uptimeMs: null,
    });
    expect(read.code).toBe('new-code');
    expect(read.uptimeMs).toBe(0);
    for (const name of ['isNew', 'status', 'previous']) expect(read).not.toHaveProperty(name);
  });

  it('uses the current time for a missing time', () => {
    const at = Date.now();
    expect(readFailure({ ...before.toJSON(), endedAt: undefined }, 1e6).endedAt - at).toBeLessThan(1e5);
  });

  const fields = before.toJSON();
  it.each<[string, unknown]>([
    ...[undefined, null, 5, 'text', [], {}].map((value): [string, unknown] => [JSON.stringify(value), value]),
    ...['code', 'message', 'stage', 'verdict', 'advice'].flatMap((name): [string, unknown][] => [
      [`no ${name}`, { ...fields, [name]: undefined }],
      [`a number as ${name}`, { ...fields, [name]: 5 }],
    ]),
    ['an unknown stage', { ...fields, stage: 'farewell' }],
    ['an unknown verdict', { ...fields, verdict: 'hope' }],
    ['an incomplete previous failure', { ...fields, previous: { code: 'x' } }],
    ['null as previous failure', { ...fields, previous: null }],
  ])('throws for a value that is not a failure: %s', (_what, value) => {
    expect(() => readFailure(value)).toThrow(new TypeError('a field of the failure is missing or wrong'));
  });

  it('returns any failure unchanged', () => {
    const any = fc.record({
      stage: fc.constantFrom<Stage>('ticket', 'handshake', 'stream'),
      verdict: fc.constantFrom<Verdict>('stop', 'renew', 'wait', 'backoff'),
      ...{ summary: fc.string(), advice: fc.string(), endedAt: fc.nat(), uptimeMs: fc.nat(), framesReceived: fc.nat() },
      status: fc.option(fc.nat(), { nil: undefined }),
      reason: fc.option(fc.string(), { nil: undefined }),
      meaning: fc.option(fc.string(), { nil: undefined }),
      detail: fc.option(fc.string(), { nil: undefined }),
    });
    fc.assert(
      fc.property(any, (made) => {
        const error = new TradeFeedError({ code: 'connection-lost', ...made });
        expect(readFailure(written(error)).toJSON()).toEqual(error.toJSON());
      }),
    );
  });

  it('keeps a message that another version has composed differently', () => {
    const fields = { ...before.toJSON(), message: 'Something else.' };
    expect(readFailure(fields).message).toBe('Something else.');
    expect(copyFailure(readFailure(fields), { verdict: 'stop' }).message).toBe('Something else.');
    expect(copyFailure(readFailure(fields), { advice: 'Stop.' }).message).toBe('Something else. Stop.');
  });

  it('reads the summary out of the message, with the detail and without the advice', () => {
    expect(readFailure(written(before)).summary).toBe('The service cannot issue tickets at the moment (HTTP 503).');
    expect(readFailure(written(before.toPublic())).summary).toBe(before.summary);
    expect(readFailure(written(before))).not.toHaveProperty('detail');
    expect(copyFailure(readFailure(written(before)), { advice: 'Stop.' }).message).toBe(
      'The service cannot issue tickets at the moment (HTTP 503). Stop.',
    );
  });
});
