import { describe, expect, it, jest } from '@jest/globals';
import { applyClassify, type ClassifyOption } from '../../../src/protocol/failures/apply-classify.js';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import type { Verdict } from '../../../src/protocol/failures/failure-code.js';
import { type FailureFacts, TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';

const facts: FailureFacts = { stage: 'ticket', status: 503, retryAfterMs: 5, endedAt: 1, cause: new Error('below') };

const classified = (options: ClassifyOption) => applyClassify(options, createTradeFeedError(facts));

describe('applyClassify', () => {
  it('stops with a failure that `classify` throws, although its verdict was different', () => {
    const thrower = (error: TradeFeedError): never => {
      throw error;
    };
    expect(classified({ classify: thrower })).toMatchObject({
      code: 'credential-service-unavailable',
      verdict: 'stop',
      advice: 'Your option `classify` threw this.',
    });
  });

  it.each([[{}], [{ classify: undefined }]])('uses the verdict of the table without `classify`: %j', (settings) => {
    const error = classified(settings);
    expect(error).toBeInstanceOf(TradeFeedError);
    expect({ ...(error as object) }).toEqual({ ...createTradeFeedError(facts) });
  });

  it.each<Verdict>(['stop', 'renew', 'wait', 'backoff'])('uses the verdict that `classify` returns: %s', (verdict) => {
    const error = classified({ classify: () => verdict }) as TradeFeedError;
    const usual = createTradeFeedError(facts);
    const advice =
      verdict === usual.verdict
        ? usual.advice
        : `Your option \`classify\` changed the verdict from ${usual.verdict} to ${verdict}.`;
    const message = usual.message.replace(usual.advice, advice);
    expect(error.toJSON()).toEqual({ ...usual.toJSON(), verdict, advice, message });
    expect(error.cause).toBe(facts.cause);
  });

  it('creates no second error if `classify` returns the verdict of the table', () => {
    const classify = jest.fn<(failure: TradeFeedError, verdict: Verdict) => Verdict>((_failure, verdict) => verdict);
    expect(classified({ classify })).toBe(classify.mock.calls[0]?.[0]);
  });

  it('calls `classify` once, with the failure and the verdict of the table', () => {
    const classify = jest.fn<(failure: TradeFeedError, verdict: Verdict) => Verdict>((_failure, verdict) => verdict);
    classified({ classify });
    expect(classify).toHaveBeenCalledTimes(1);
    const [error, verdict] = classify.mock.calls[0]!;
    expect(error.toJSON()).toEqual(createTradeFeedError(facts).toJSON());
    expect(verdict).toBe('backoff');
  });

  it.each([[new Error('mine')], ['text'], [undefined], [null]])(
    'returns an exception of `classify` unchanged: %p',
    (thrown) => {
      const classify = () => {
        // eslint-disable-next-line @typescript-eslint/only-throw-error -- as a user's function may
        throw thrown;
      };
      expect(classified({ classify })).toBe(thrown);
    },
  );

  it.each(['retry', '', undefined, null, true, Promise.resolve('stop'), 'toString'])(
    'stops if `classify` returns %p, which is not a verdict',
    (given) => {
      const error = classified({ classify: () => given as Verdict }) as TradeFeedError;
      expect(error).toMatchObject({ code: 'invalid-options', verdict: 'stop' });
      expect(error.message).toContain('`classify` must be a function that returns stop, renew, wait, backoff)');
    },
  );
});
