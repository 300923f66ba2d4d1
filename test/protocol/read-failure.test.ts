import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { tradeFeedError } from '../../src/protocol/classify.js';
import { type Stage, TradeFeedError, type Verdict } from '../../src/protocol/failure.js';
import { readFailure } from '../../src/protocol/read-failure.js';

const before = tradeFeedError({ stage: 'ticket', status: 503, retryAfterMs: 2_000, endedAt: 400 });
const facts = { uptimeMs: 5, framesReceived: 6, endedAt: 500, cause: new Error('below') };
const failure = tradeFeedError({ stage: 'stream', closeCode: 4003, reason: 'access expired', ...facts }).with({
  previous: before,
});

const written = (error: TradeFeedError): unknown => JSON.parse(JSON.stringify(error));

describe('readFailure', () => {
  it.each([failure, before, failure.with({ verdict: 'stop', advice: 'Do.', previous: undefined })])(
    'gives back what was written: $code',
    (error) => {
      const read = readFailure(written(error));
      expect(read).toBeInstanceOf(TradeFeedError);
      expect(read).toBeInstanceOf(Error);
      expect(read.toJSON()).toEqual({ ...error.toJSON(), ...(error.previous && { previous: read.previous }) });
      expect(read.previous?.toJSON()).toEqual(error.previous?.toJSON());
      expect(read.cause).toBeUndefined();
    },
  );

  it('puts the times right by the difference of the clocks, that of the failure before as well', () => {
    expect(readFailure(written(failure), 1_000)).toMatchObject({
      endedAt: 1_500,
      uptimeMs: 5,
      previous: { endedAt: 1_400 },
    });
    expect(readFailure(written(failure), -100)).toMatchObject({ endedAt: 400, previous: { endedAt: 300 } });
  });

  it('knows a code of a newer version, and leaves out fields that it does not know, or of another type', () => {
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

  it('takes now for a time that is missing', () => {
    const at = Date.now();
    expect(readFailure({ ...before.toJSON(), endedAt: undefined }, 1e6).endedAt - at).toBeLessThan(1e5);
  });

  const fields = before.toJSON();
  it.each<[string, unknown]>([
    ...[undefined, null, 5, 'text', [], {}].map((value): [string, unknown] => [JSON.stringify(value), value]),
    ...['code', 'message', 'stage', 'verdict', 'advice'].flatMap((name): [string, unknown][] => [
      [`one without ${name}`, { ...fields, [name]: undefined }],
      [`one with a number as ${name}`, { ...fields, [name]: 5 }],
    ]),
    ['one of a stage that there is not', { ...fields, stage: 'farewell' }],
    ['one of a verdict that there is not', { ...fields, verdict: 'hope' }],
    ['one with half a failure before it', { ...fields, previous: { code: 'x' } }],
    ['one with none before it', { ...fields, previous: null }],
  ])('throws for what is no failure: %s', (_what, value) => {
    expect(() => readFailure(value)).toThrow(new TypeError('a field of its failure is wrong'));
  });

  it('gives back any failure', () => {
    const any = fc.record({
      stage: fc.constantFrom<Stage>('ticket', 'handshake', 'stream'),
      verdict: fc.constantFrom<Verdict>('stop', 'renew', 'wait', 'backoff'),
      ...{ message: fc.string(), advice: fc.string(), endedAt: fc.nat(), uptimeMs: fc.nat(), framesReceived: fc.nat() },
      status: fc.option(fc.nat(), { nil: undefined }),
      reason: fc.option(fc.string(), { nil: undefined }),
    });
    fc.assert(
      fc.property(any, (made) => {
        const error = new TradeFeedError({ code: 'connection-lost', ...made });
        expect(readFailure(written(error)).toJSON()).toEqual(error.toJSON());
      }),
    );
  });
});
