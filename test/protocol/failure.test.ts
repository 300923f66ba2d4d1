import { describe, expect, it, jest } from '@jest/globals';
import { inspect } from 'node:util';
import { tradeFeedError } from '../../src/protocol/classify.js';
import { TradeFeedError } from '../../src/protocol/failure.js';

const cause = new Error('below');
const first = tradeFeedError({ stage: 'stream', closeCode: 1001, reason: 'server shutdown', uptimeMs: 9, endedAt: 1 });
const second = tradeFeedError({ stage: 'ticket', status: 503, retryAfterMs: 2_000, endedAt: 2, cause });

describe('TradeFeedError', () => {
  it('is an Error with a name, a message, a stack and what was observed', () => {
    expect(second).toBeInstanceOf(Error);
    expect(second).toBeInstanceOf(TradeFeedError);
    expect(String(second)).toBe(`TradeFeedError: ${second.message}`);
    expect(second.stack).toContain('failure.test');
    expect({ ...second }).toEqual({
      name: 'TradeFeedError',
      code: 'credential-service-unavailable',
      stage: 'ticket',
      status: 503,
      verdict: 'backoff',
      advice: 'Nothing to do: the request is repeated with backoff.',
      retryAfterMs: 2_000,
      uptimeMs: 0,
      framesReceived: 0,
      endedAt: 2,
    });
    expect(second.cause).toBe(cause);
  });

  it('has no property for what was not observed', () => {
    const absent = ['status', 'closeCode', 'reason', 'retryAfterMs', 'previous', 'cause', 'detail'];
    const bare = tradeFeedError({ stage: 'stream', code: 'connection-stalled', cause: undefined, reason: undefined });
    expect(absent.filter((name) => name in bare)).toEqual([]);
  });

  it('lists no stack among its fields', () => {
    expect(Object.keys(second)).not.toContain('stack');
    expect(JSON.stringify(second)).not.toContain('failure.test');
  });

  it('ended now, unless it is said when', () => {
    jest.useFakeTimers({ now: 1_234_567 });
    try {
      expect(tradeFeedError({ stage: 'ticket', status: 503 }).endedAt).toBe(1_234_567);
      expect(tradeFeedError({ stage: 'ticket', status: 503, endedAt: 5 }).endedAt).toBe(5);
    } finally {
      jest.useRealTimers();
    }
  });

  it('gives plain data without cause and stack as JSON', () => {
    const error = second.with({ previous: first });
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'TradeFeedError',
      message: second.message,
      code: 'credential-service-unavailable',
      stage: 'ticket',
      status: 503,
      verdict: 'backoff',
      advice: second.advice,
      retryAfterMs: 2_000,
      uptimeMs: 0,
      framesReceived: 0,
      endedAt: 2,
      previous: {
        name: 'TradeFeedError',
        message: first.message,
        code: 'server-shutdown',
        stage: 'stream',
        closeCode: 1001,
        reason: 'server shutdown',
        verdict: 'backoff',
        advice: first.advice,
        uptimeMs: 9,
        framesReceived: 0,
        endedAt: 1,
      },
    });
  });

  it('is printed with its name, message, fields and cause', () => {
    const text = inspect(second);
    expect(text).toContain(`TradeFeedError: ${second.message}`);
    expect(text).toContain("code: 'credential-service-unavailable'");
    expect(text).toContain('[cause]: Error: below');
  });
});

describe('with()', () => {
  it('changes what it is given, keeps the rest, and leaves the original alone', () => {
    const changed = second.with({ verdict: 'stop', previous: first });
    expect(changed).toBeInstanceOf(TradeFeedError);
    expect(changed).not.toBe(second);
    expect(changed.toJSON()).toEqual({ ...second.toJSON(), verdict: 'stop', previous: first });
    expect(changed.previous).toBe(first);
    expect(changed.cause).toBe(cause);
    expect(second.verdict).toBe('backoff');
    expect('previous' in second).toBe(false);
  });

  it('gives new advice in the message as well, letter for letter', () => {
    const changed = second.with({ advice: 'Pay $& and $1.' });
    expect(changed.advice).toBe('Pay $& and $1.');
    expect(changed.message).toBe('The service cannot issue tickets at the moment (HTTP 503). Pay $& and $1.');
    expect(second.with({ verdict: 'stop' }).message).toBe(second.message);
  });

  it('keeps the stack of where it failed', () => {
    const changed = ((): TradeFeedError => second.with({ verdict: 'stop' }))();
    expect(changed.stack).toBe(second.stack);
  });

  it('is printed with its new advice, not with that of before', () => {
    const printed = inspect(second.with({ advice: 'Stop here.' }));
    expect(printed).toContain('(HTTP 503). Stop here.');
    expect(printed).not.toContain('Nothing to do');
  });

  it('takes a `previous` away', () => {
    expect('previous' in second.with({ previous: first }).with({ previous: undefined })).toBe(false);
  });

  it('keeps no cause where there was none', () => {
    expect('cause' in first.with({ verdict: 'stop' })).toBe(false);
  });
});
