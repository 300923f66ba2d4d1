import { describe, expect, it, jest } from '@jest/globals';
import { inspect } from 'node:util';
import { createTradeFeedError } from '../../../src/protocol/failures/classify.js';
import { copyFailure, TradeFeedError } from '../../../src/protocol/failures/trade-feed-error.js';
import { readFailure } from '../../../src/protocol/failures/read-failure.js';
import { everythingIn } from '../../support/everything-in.js';

const cause = new Error('below');
const first = createTradeFeedError({
  stage: 'stream',
  closeCode: 1001,
  reason: 'server shutdown',
  uptimeMs: 9,
  endedAt: 1,
});
const second = createTradeFeedError({ stage: 'ticket', status: 503, retryAfterMs: 2_000, endedAt: 2, cause });

describe('TradeFeedError', () => {
  it('is an Error with a name, a message, a stack and the observed facts', () => {
    expect(second).toBeInstanceOf(Error);
    expect(second).toBeInstanceOf(TradeFeedError);
    expect(String(second)).toBe(`TradeFeedError: ${second.message}`);
    expect(second.stack).toContain('trade-feed-error.test');
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

  it('has no property for a fact that was not observed', () => {
    const absent = ['status', 'closeCode', 'reason', 'retryAfterMs', 'previous', 'cause', 'detail'];
    const bare = createTradeFeedError({
      stage: 'stream',
      code: 'connection-stalled',
      cause: undefined,
      reason: undefined,
    });
    expect(absent.filter((name) => name in bare)).toEqual([]);
  });

  it('does not list the stack among the fields', () => {
    expect(Object.keys(second)).not.toContain('stack');
    expect(JSON.stringify(second)).not.toContain('trade-feed-error.test');
  });

  it('ended now, unless `endedAt` is set', () => {
    jest.useFakeTimers({ now: 1_234_567 });
    try {
      expect(createTradeFeedError({ stage: 'ticket', status: 503 }).endedAt).toBe(1_234_567);
      expect(createTradeFeedError({ stage: 'ticket', status: 503, endedAt: 5 }).endedAt).toBe(5);
    } finally {
      jest.useRealTimers();
    }
  });

  it('is plain data without cause and stack in JSON', () => {
    const error = copyFailure(second, { previous: first });
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

  it('composes the message once, of summary, detail and advice', () => {
    expect(second.summary).toBe('The service cannot issue tickets at the moment.');
    expect(second.detail).toBe('HTTP 503');
    expect(second.message).toBe(`The service cannot issue tickets at the moment (HTTP 503). ${second.advice}`);
    const fields = { code: 'connection-lost', stage: 'stream', verdict: 'stop', advice: 'Wait.' } as const;
    expect(new TradeFeedError({ ...fields, summary: 'It ended.' }).message).toBe('It ended. Wait.');
    expect(new TradeFeedError({ ...fields, summary: 'It ended', detail: 'early' }).message).toBe(
      'It ended (early). Wait.',
    );
    const error = new TradeFeedError({ ...fields, summary: 'No.', option: 'baseUrl', detail: 'must be a URL' });
    expect(error.message).toBe('No (`baseUrl` must be a URL). Wait.');
    expect(error.option).toBe('baseUrl');
  });

  it('keeps summary, detail and option out of JSON and of listings', () => {
    for (const name of ['summary', 'detail', 'option']) {
      expect(Object.keys(second)).not.toContain(name);
      expect(second.toJSON()).not.toHaveProperty(name);
    }
    expect(inspect(second)).not.toContain('summary');
  });

  it('is printed with name, message, fields and cause', () => {
    const text = inspect(second);
    expect(text).toContain(`TradeFeedError: ${second.message}`);
    expect(text).toContain("code: 'credential-service-unavailable'");
    expect(text).toContain('[cause]: Error: below');
  });
});

describe('copyFailure', () => {
  it('changes the fields that it receives, keeps the rest, and does not change the original', () => {
    const changed = copyFailure(second, { verdict: 'stop', previous: first });
    expect(changed).toBeInstanceOf(TradeFeedError);
    expect(changed).not.toBe(second);
    expect(changed.toJSON()).toEqual({ ...second.toJSON(), verdict: 'stop', previous: first });
    expect(changed.previous).toBe(first);
    expect(changed.cause).toBe(cause);
    expect(second.verdict).toBe('backoff');
    expect('previous' in second).toBe(false);
  });

  it('puts new advice into the message, character by character', () => {
    const changed = copyFailure(second, { advice: 'Pay $& and $1.' });
    expect(changed.advice).toBe('Pay $& and $1.');
    expect(changed.message).toBe('The service cannot issue tickets at the moment (HTTP 503). Pay $& and $1.');
    expect(copyFailure(second, { verdict: 'stop' }).message).toBe(second.message);
  });

  it('keeps the stack of the original', () => {
    const changed = ((): TradeFeedError => copyFailure(second, { verdict: 'stop' }))();
    expect(changed.stack).toBe(second.stack);
  });

  it('is printed with the new advice, without the old one', () => {
    const printed = inspect(copyFailure(second, { advice: 'Stop here.' }));
    expect(printed).toContain('(HTTP 503). Stop here.');
    expect(printed).not.toContain('Nothing to do');
  });

  it('keeps the meaning, unless there is new advice without a meaning, which may be private', () => {
    expect(copyFailure(second, { verdict: 'stop', previous: first }).meaning).toBe(second.meaning);
    expect(copyFailure(second, { advice: 'Call 10.0.0.7.' })).not.toHaveProperty('meaning');
    expect(copyFailure(second, { advice: 'Call us.', meaning: 'No.' })).toMatchObject({
      meaning: 'No.',
      advice: 'Call us.',
    });
  });

  it('removes `previous`', () => {
    expect('previous' in copyFailure(copyFailure(second, { previous: first }), { previous: undefined })).toBe(false);
  });

  it('adds no cause', () => {
    expect('cause' in copyFailure(first, { verdict: 'stop' })).toBe(false);
  });
});

describe('toPublic()', () => {
  const own = { reason: 'private', detail: 'private', cause: new Error('private') };
  const refused = createTradeFeedError({ stage: 'ticket', code: 'api-key-unavailable', endedAt: 3, ...own });
  const closed = createTradeFeedError({
    stage: 'stream',
    closeCode: 1001,
    uptimeMs: 9,
    framesReceived: 8,
    endedAt: 4,
    ...own,
  });

  it('keeps the numbers, and has the texts of the table in place of the observed texts', () => {
    const shown = copyFailure(closed, { previous: refused }).toPublic();
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
      'The `apiKey` function returned no key. See the cause, which your function threw; it is called again with backoff.',
    );
    expect(shown.cause).toBeUndefined();
    expect(everythingIn(shown)).not.toContain('private');
    expect(second.toPublic()).toMatchObject({ status: 503, retryAfterMs: 2_000 });
  });

  it('does not contain the stack of the server', () => {
    expect(closed.toPublic().stack).toBe(`TradeFeedError: ${closed.toPublic().message}`);
  });

  it('leaves out properties that other code has added', () => {
    const shown = Object.assign(copyFailure(refused, {}), { host: 'private', port: 5_432 }).toPublic();
    expect(everythingIn(shown)).not.toContain('private');
    expect(shown).not.toHaveProperty('port');
  });

  it('has a fixed text if there is no meaning', () => {
    const made = new TradeFeedError({
      ...{
        code: 'connection-lost',
        stage: 'stream',
        verdict: 'stop',
        summary: 'private',
        advice: 'private',
        status: 5,
      },
    } as const);
    for (const each of [made, copyFailure(refused, { advice: 'private' })])
      expect(each.toPublic()).toMatchObject({
        code: each.code,
        message: 'The feed failed. See the log of the server.',
        meaning: 'The feed failed.',
        advice: 'See the log of the server.',
      });
    expect(everythingIn([made.toPublic(), copyFailure(refused, { advice: 'private' }).toPublic()])).not.toContain(
      'private',
    );
  });

  it('is the same for a public failure, and after JSON', () => {
    const shown = copyFailure(closed, { previous: refused }).toPublic();
    const read = readFailure(JSON.parse(JSON.stringify(copyFailure(closed, { previous: refused }))));
    for (const each of [shown.toPublic(), read.toPublic(), readFailure(JSON.parse(JSON.stringify(shown)))])
      expect(JSON.parse(JSON.stringify(each))).toEqual(JSON.parse(JSON.stringify(shown)));
  });
});
