import { describe, expect, it, jest } from '@jest/globals';
import { inspect } from 'node:util';
import { tradeFeedError } from '../../src/protocol/classify.js';
import { TradeFeedError } from '../../src/protocol/failure.js';
import { readFailure } from '../../src/protocol/read-failure.js';
import { everythingIn } from '../support/everything-in.js';

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
      meaning: 'The service cannot issue tickets at the moment.',
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
      meaning: 'The service cannot issue tickets at the moment.',
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
        meaning: 'The service shut down.',
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

  it('keeps the meaning, unless there is new advice without one: that may name what is private', () => {
    expect(second.with({ verdict: 'stop', previous: first }).meaning).toBe(second.meaning);
    expect(second.with({ advice: 'Call 10.0.0.7.' })).not.toHaveProperty('meaning');
    expect(second.with({ advice: 'Call us.', meaning: 'No.' })).toMatchObject({ meaning: 'No.', advice: 'Call us.' });
  });

  it('takes a `previous` away', () => {
    expect('previous' in second.with({ previous: first }).with({ previous: undefined })).toBe(false);
  });

  it('keeps no cause where there was none', () => {
    expect('cause' in first.with({ verdict: 'stop' })).toBe(false);
  });
});

describe('toPublic()', () => {
  const own = { message: 'private', reason: 'private', detail: 'private', cause: new Error('private') };
  const refused = tradeFeedError({ stage: 'ticket', code: 'api-key-unavailable', endedAt: 3, ...own });
  const closed = tradeFeedError({
    stage: 'stream',
    closeCode: 1001,
    uptimeMs: 9,
    framesReceived: 8,
    endedAt: 4,
    ...own,
  });

  it('keeps what was counted, and has the words of the table in place of what was observed', () => {
    const shown = closed.with({ previous: refused }).toPublic();
    expect(shown).toBeInstanceOf(TradeFeedError);
    expect(shown.toJSON()).toEqual({
      name: 'TradeFeedError',
      code: 'server-shutdown',
      stage: 'stream',
      verdict: 'backoff',
      closeCode: 1001,
      uptimeMs: 9,
      framesReceived: 8,
      endedAt: 4,
      meaning: 'The service shut down.',
      advice: 'Nothing to do: the feed reconnects with backoff.',
      message: 'The service shut down. Nothing to do: the feed reconnects with backoff.',
      previous: shown.previous,
    });
    expect(shown.previous?.message).toBe(
      'The `apiKey` function gave no key. See the cause: the function is yours; it is asked again with backoff.',
    );
    expect(shown.cause).toBeUndefined();
    expect(everythingIn(shown)).not.toContain('private');
    expect(second.toPublic()).toMatchObject({ status: 503, retryAfterMs: 2_000 });
  });

  it('has no stack of the server', () => {
    expect(closed.toPublic().stack).toBe(`TradeFeedError: ${closed.toPublic().message}`);
  });

  it('leaves out what somebody else has put on it', () => {
    const shown = Object.assign(refused.with({}), { host: 'private', port: 5_432 }).toPublic();
    expect(everythingIn(shown)).not.toContain('private');
    expect(shown).not.toHaveProperty('port');
  });

  it('says that the feed failed, where there is no meaning', () => {
    const made = new TradeFeedError({
      ...{
        code: 'connection-lost',
        stage: 'stream',
        verdict: 'stop',
        message: 'private',
        advice: 'private',
        status: 5,
      },
    } as const);
    for (const each of [made, refused.with({ advice: 'private' })])
      expect(each.toPublic()).toMatchObject({
        code: each.code,
        message: 'The feed failed. See the log of the server.',
        meaning: 'The feed failed.',
        advice: 'See the log of the server.',
      });
    expect(everythingIn([made.toPublic(), refused.with({ advice: 'private' }).toPublic()])).not.toContain('private');
  });

  it('is the same when it is public already, and behind JSON', () => {
    const shown = closed.with({ previous: refused }).toPublic();
    const read = readFailure(JSON.parse(JSON.stringify(closed.with({ previous: refused }))));
    for (const each of [shown.toPublic(), read.toPublic(), readFailure(JSON.parse(JSON.stringify(shown)))])
      expect(JSON.parse(JSON.stringify(each))).toEqual(JSON.parse(JSON.stringify(shown)));
  });
});
