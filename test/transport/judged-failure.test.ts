import { describe, expect, it, jest } from '@jest/globals';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import type { Verdict } from '../../src/protocol/failures/failure-code.js';
import { type FailureFacts, TradeFeedError } from '../../src/protocol/failures/trade-feed-error.js';
import { judgedFailure } from '../../src/transport/judged-failure.js';

const facts: FailureFacts = { stage: 'ticket', status: 503, retryAfterMs: 5, endedAt: 1, cause: new Error('below') };

describe('judgedFailure', () => {
  it('stops on a failure that the function of the user throws, though its verdict was another', () => {
    const thrower = (error: TradeFeedError): never => {
      throw error;
    };
    expect(judgedFailure({ classify: thrower }, facts)).toMatchObject({
      code: 'credential-service-unavailable',
      verdict: 'stop',
      advice: 'Your option `classify` threw this.',
    });
  });

  it.each([[{}], [{ classify: undefined }]])('is what the table says where nobody says otherwise: %j', (settings) => {
    const error = judgedFailure(settings, facts);
    expect(error).toBeInstanceOf(TradeFeedError);
    expect({ ...(error as object) }).toEqual({ ...createTradeFeedError(facts) });
  });

  it.each<Verdict>(['stop', 'renew', 'wait', 'backoff'])('takes the verdict of the user: %s', (verdict) => {
    const error = judgedFailure({ classify: () => verdict }, facts) as TradeFeedError;
    const usual = createTradeFeedError(facts);
    const advice =
      verdict === usual.verdict
        ? usual.advice
        : `Your option \`classify\` changed the verdict from ${usual.verdict} to ${verdict}.`;
    const message = usual.message.replace(usual.advice, advice);
    expect(error.toJSON()).toEqual({ ...usual.toJSON(), verdict, advice, message });
    expect(error.cause).toBe(facts.cause);
  });

  it('makes no second error when the user agrees with the table', () => {
    const classify = jest.fn<(failure: TradeFeedError, verdict: Verdict) => Verdict>((_failure, verdict) => verdict);
    expect(judgedFailure({ classify }, facts)).toBe(classify.mock.calls[0]?.[0]);
  });

  it('shows the function the failure and the verdict of the table, once', () => {
    const classify = jest.fn<(failure: TradeFeedError, verdict: Verdict) => Verdict>((_failure, verdict) => verdict);
    judgedFailure({ classify }, facts);
    expect(classify).toHaveBeenCalledTimes(1);
    const [error, verdict] = classify.mock.calls[0]!;
    expect(error.toJSON()).toEqual(createTradeFeedError(facts).toJSON());
    expect(verdict).toBe('backoff');
  });

  it.each([[new Error('mine')], ['text'], [undefined], [null]])('gives back what the function throws: %p', (thrown) => {
    const classify = () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- as a user's function may
      throw thrown;
    };
    expect(judgedFailure({ classify }, facts)).toBe(thrown);
  });

  it.each(['retry', '', undefined, null, true, Promise.resolve('stop'), 'toString'])(
    'stops when the function gives %p, which is no verdict',
    (given) => {
      const error = judgedFailure({ classify: () => given as Verdict }, facts) as TradeFeedError;
      expect(error).toMatchObject({ code: 'invalid-options', verdict: 'stop' });
      expect(error.message).toContain('`classify` must be a function that returns stop, renew, wait, backoff)');
    },
  );
});
