import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { CloseReason } from '../../src/protocol/contract.js';
import { EventRecord } from '../../src/protocol/event-record.js';
import { classify, createTradeFeedError, serviceMeanings } from '../../src/protocol/failures/classify.js';
import {
  failurePage,
  type Meaning,
  type RelayFailureCode,
  type Stage,
  type Verdict,
} from '../../src/protocol/failures/meanings.js';
import {
  applyClassify,
  copyFailure,
  type FailureFacts,
  failureOf,
  isTradeFeedError,
  readFailure,
  thrownByOption,
  TradeFeedError,
} from '../../src/protocol/failures/trade-feed-error.js';
import { relayError } from '../../src/browser/relay-error.js';
import { everythingIn } from '../support/everything-in.js';
import { expectedFailure, failureCodes, type FailureRow, failureTable } from '../support/failure-table.js';

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe('classify', () => {
  const stages: readonly Stage[] = ['ticket', 'handshake', 'stream'];
  const reasons = [...Object.values(CloseReason), undefined, '', 'Access expired', 'access expired ', 'another'];
  const everything: readonly FailureFacts[] = [
    ...range(100, 999).flatMap((status) => [
      { stage: 'ticket' as const, status },
      { stage: 'handshake' as const, status },
    ]),
    ...[...range(1000, 1016), 2999, 3000, ...range(4000, 4005), 4999].flatMap((closeCode) =>
      reasons.map((reason) => ({ stage: 'stream' as const, closeCode, reason })),
    ),
    ...failureTable.flatMap(({ stage, status, closeCode, code, certificate }) =>
      status === undefined && closeCode === undefined
        ? (stage === undefined ? stages : [stage]).flatMap((each) => [
            { stage: each, code, certificate },
            { stage: each, code, certificate, hasOpened: true },
          ])
        : [],
    ),
  ];

  it('agrees with the failure table on every status, close code, reason and code', () => {
    const isDifferent = (facts: FailureFacts): boolean => {
      const { stage, code, verdict } = createTradeFeedError(facts);
      const expected = expectedFailure(facts);
      const seen = [stage, code, verdict, classify(facts)];
      return seen.join() !== [expected.stage, expected.code, expected.verdict, expected.verdict].join();
    };
    expect(everything.filter(isDifferent)).toEqual([]);
  });

  const keyOf = ({ stage, status, closeCode, reason, code, certificate }: Meaning | FailureRow): string =>
    [stage, status ?? closeCode ?? code, reason, certificate].join(' ');

  it('has exactly the rows of the failure table, and a row for every code', () => {
    expect(serviceMeanings.map(keyOf).sort()).toEqual(failureTable.map(keyOf).sort());
    expect([...new Set(serviceMeanings.map(({ code }) => code))].sort()).toEqual(failureCodes);
  });

  it.each<[string, unknown]>([
    ['a stage alone', { stage: 'ticket' }],
    ['a close code at a stage without close codes', { stage: 'ticket', closeCode: 4001 }],
    ['a code of another stage', { stage: 'stream', code: 'invalid-ticket' }],
    ['an unknown stage', { stage: 'farewell', status: 401 }],
    ['a code that its status contradicts', { stage: 'ticket', code: 'not-entitled', status: 401 }],
    ['a status and a close code', { stage: 'stream', status: 401, closeCode: 1001 }],
  ])('throws a TypeError for %s', (_what, facts) => {
    const error = expect.objectContaining({ message: expect.stringMatching(/^No failure is known for stage /) });
    for (const make of [classify, createTradeFeedError]) expect(() => make(facts as FailureFacts)).toThrow(error);
    expect(() => classify(facts as FailureFacts)).toThrow(TypeError);
  });

  it.each([
    [{ stage: 'ticket', code: 'invalid-api-key' }, 'stop'],
    [{ stage: 'stream', code: 'access-revoked' }, 'renew'],
    [{ stage: 'handshake', code: 'handshake-failed' }, 'backoff'],
    [{ stage: 'handshake', code: 'invalid-options' }, 'stop'],
  ] as const)('%j, a code alone, is %s', (facts, verdict) => {
    expect(classify(facts)).toBe(verdict);
  });
});

it('a message says in one line what happened, what was observed, and what to do; `detail` has what was observed', () => {
  const closed = { stage: 'stream', closeCode: 4003, reason: ' why\n', detail: '\tx\ny ' } as const;
  const failure = createTradeFeedError(closed);
  expect(failure).toMatchObject({ reason: ' why\n', detail: 'close code 4003, "why", x␊y' });
  expect(failure.message).toBe(
    `Access was lost, for a reason the contract doesn't name (close code 4003, "why", x␊y). ${failure.advice} See ${failurePage('connection-closed')}`,
  );
  expect(createTradeFeedError({ ...closed, reason: ' ' }).detail).toBe('close code 4003, x␊y');
  expect(createTradeFeedError({ stage: 'handshake', status: 503 }).detail).toBe('HTTP 503');
  expect(failure.toJSON()).not.toHaveProperty('detail');
});

it('an untrusted certificate keeps its verdict when it is classified again, also as plain data', () => {
  const facts = { stage: 'ticket', code: 'untrusted-certificate', certificate: 'date', hasOpened: true } as const;
  const failure = createTradeFeedError(facts);
  expect(failure).toMatchObject({ verdict: 'backoff', certificate: 'date', hasOpened: true });
  const copies = [failure, failure.toPublic(), readFailure(JSON.parse(JSON.stringify(failure)))];
  expect(copies.map(classify)).toEqual(['backoff', 'backoff', 'backoff']);
  expect(createTradeFeedError({ stage: 'ticket', status: 503, hasOpened: true })).not.toHaveProperty('hasOpened');
});

describe('relayError', () => {
  it.each<[RelayFailureCode, Stage, Verdict]>([
    ['relay-unreachable', 'handshake', 'backoff'],
    ['relay-lost', 'stream', 'backoff'],
    ['relay-stalled', 'stream', 'renew'],
  ])('of the code %s alone has the stage %s and the verdict %s', (code, stage, verdict) => {
    expect(relayError({ code, status: 503, detail: 'x' })).toMatchObject({ code, stage, verdict, status: 503 });
  });

  it.each<[string, object]>([
    ['no facts', {}],
    ['a code of the service', { code: 'connection-lost' }],
    ['a code that only a relay reports', { code: 'relay-behind' }],
    ['an unknown code', { code: 'out-of-luck' }],
  ])('throws a TypeError for %s', (_what, facts) => {
    expect(() => relayError(facts)).toThrow(/^No relay failure is known for code /);
  });

  it('classifies any status: stops if the request is at fault, retries if the relay is', () => {
    const wrong = range(100, 999).filter((status) => {
      const isTemporary = [408, 429].includes(status) || Math.floor(status / 100) === 5;
      const known = { 401: 'relay-refused', 403: 'relay-refused', 503: 'relay-full' }[status];
      const { code, verdict } = relayError({ status });
      return (
        code !== (known ?? (isTemporary ? 'relay-failed' : 'invalid-relay')) ||
        verdict !== (isTemporary ? 'backoff' : 'stop')
      );
    });
    expect(wrong).toEqual([]);
  });
});

describe('a TradeFeedError', () => {
  const cause = new Error('below');
  const shutDown = { stage: 'stream', closeCode: 1001, reason: 'server shutdown' } as const;
  const first = createTradeFeedError({ ...shutDown, uptimeMs: 9, endedAt: 1 });
  const second = createTradeFeedError({ stage: 'ticket', status: 503, retryAfterMs: 2_000, endedAt: 2, cause });

  it('turns into JSON without cause and stack, but with the previous failure', () => {
    const { message, advice } = second;
    const json: unknown = JSON.parse(JSON.stringify(copyFailure(second, { previous: first })));
    const meaning = "The service can't issue tickets right now.";
    expect(json).toEqual({
      ...{ name: 'TradeFeedError', code: 'credential-service-unavailable', stage: 'ticket', verdict: 'backoff' },
      ...{ status: 503, retryAfterMs: 2_000, uptimeMs: 0, framesReceived: 0, endedAt: 2, message, meaning, advice },
      previous: expect.objectContaining({ ...shutDown, code: 'server-shutdown', uptimeMs: 9, endedAt: 1 }),
    });
  });

  describe('copyFailure', () => {
    it('changes the given fields, keeps the rest, and leaves the original alone', () => {
      const changed = copyFailure(second, { verdict: 'stop', previous: first });
      expect(changed).toBeInstanceOf(TradeFeedError);
      expect(changed).not.toBe(second);
      expect(changed.toJSON()).toEqual({ ...second.toJSON(), verdict: 'stop', previous: first });
      expect([changed.previous, changed.cause, changed.stack]).toEqual([first, cause, second.stack]);
      expect(second.verdict).toBe('backoff');
      expect('previous' in second).toBe(false);
    });

    it('drops the meaning if it gets advice without one, since that may be private', () => {
      expect(copyFailure(second, { verdict: 'stop', previous: first }).meaning).toBe(second.meaning);
      expect(copyFailure(second, { advice: 'Call 10.0.0.7.' })).not.toHaveProperty('meaning');
      const texts = { meaning: 'No.', advice: 'Call us.' };
      expect(copyFailure(second, texts)).toMatchObject(texts);
    });
  });

  describe('toPublic()', () => {
    const own = { reason: 'private', detail: 'private', cause: new Error('private') };
    const refused = createTradeFeedError({ stage: 'ticket', code: 'api-key-unavailable', endedAt: 3, ...own });
    const closed = createTradeFeedError({ ...shutDown, uptimeMs: 9, framesReceived: 8, endedAt: 4, ...own });

    it('keeps the numbers, and replaces observed texts with those of the table', () => {
      const shown = copyFailure(closed, { previous: refused }).toPublic();
      expect(shown).toBeInstanceOf(TradeFeedError);
      const texts = { meaning: 'The service shut down.', advice: 'Nothing to do: the feed reconnects with backoff.' };
      expect(shown.toJSON()).toEqual({
        ...{ name: 'TradeFeedError', code: 'server-shutdown', stage: 'stream', verdict: 'backoff', closeCode: 1001 },
        ...{ uptimeMs: 9, framesReceived: 8, endedAt: 4, previous: shown.previous },
        ...{ ...texts, message: `${texts.meaning} ${texts.advice}` },
      });
      const { meaning, advice } = refused;
      expect(shown.previous).toMatchObject({ code: 'api-key-unavailable', message: `${meaning} ${advice}` });
      expect(shown.cause).toBeUndefined();
      expect(everythingIn(shown)).not.toContain('private');
      expect(second.toPublic()).toMatchObject({ status: 503, retryAfterMs: 2_000 });
    });

    // test/security/private-text.test.ts has failures of every kind.
    it("drops the server's stack and properties that other code added, and has a fixed text if there's no meaning", () => {
      const added = { host: 'private', port: 5_432 };
      const shown = Object.assign(copyFailure(refused, { advice: 'private' }), added).toPublic();
      const texts = { meaning: 'The feed failed.', advice: "See the server's log." };
      expect(shown).toMatchObject({ ...texts, code: refused.code, message: `${texts.meaning} ${texts.advice}` });
      expect(shown.stack).toBe(`TradeFeedError: ${shown.message}`);
      expect(shown).not.toHaveProperty('port');
    });

    it('changes nothing when applied twice, or after a trip through JSON', () => {
      const shown = copyFailure(closed, { previous: refused }).toPublic();
      const read = readFailure(JSON.parse(JSON.stringify(copyFailure(closed, { previous: refused }))));
      for (const each of [shown.toPublic(), read.toPublic(), readFailure(JSON.parse(JSON.stringify(shown)))])
        expect(JSON.parse(JSON.stringify(each))).toEqual(JSON.parse(JSON.stringify(shown)));
    });
  });

  it('isTradeFeedError accepts failures of this or another copy of the library, and nothing else', () => {
    const fields = { name: 'TradeFeedError', code: 'client-too-slow', verdict: 'backoff' };
    expect([first, Object.assign(new Error('x'), fields)].map(isTradeFeedError)).toEqual([true, true]);
    const named = Object.assign(new Error(), { name: 'TradeFeedError' });
    for (const other of [new Error('x'), { ...first }, undefined, null, 'TradeFeedError', named])
      expect(isTradeFeedError(other)).toBe(false);
  });
});

describe('readFailure', () => {
  const before = createTradeFeedError({ stage: 'ticket', status: 503, retryAfterMs: 2_000, endedAt: 400 });
  const facts = { uptimeMs: 5, framesReceived: 6, endedAt: 500, cause: new Error('below') };
  const expired = createTradeFeedError({ stage: 'stream', closeCode: 4003, reason: 'access expired', ...facts });
  const failure = copyFailure(expired, { previous: before });

  const written = (error: TradeFeedError): unknown => JSON.parse(JSON.stringify(error));

  it('shifts times by the difference between the clocks, including those of the previous failure', () => {
    const shifted = { endedAt: 1_500, uptimeMs: 5, previous: { endedAt: 1_400 } };
    expect(readFailure(written(failure), 1_000)).toMatchObject(shifted);
    expect(readFailure(written(failure), -100)).toMatchObject({ endedAt: 400, previous: { endedAt: 300 } });
    const at = Date.now();
    expect(readFailure({ ...before.toJSON(), endedAt: undefined }, 1e6).endedAt - at).toBeLessThan(1e5);
  });

  const fields = before.toJSON();
  it.each<unknown>([
    ...[undefined, 5, 'text', [], {}, { ...fields, previous: { code: 'x' } }, { ...fields, previous: null }],
    ...['code', 'message', 'stage', 'verdict', 'advice'].map((name) => ({ ...fields, [name]: 5 })),
    { ...fields, stage: 'farewell' },
    { ...fields, verdict: 'hope' },
  ])('throws for a value that is not a failure: %j', (value) => {
    expect(() => readFailure(value)).toThrow(new TypeError('a field of the failure is missing or wrong'));
  });

  it('returns any failure unchanged', () => {
    const [text, count] = [fc.string(), fc.nat()];
    const mayBe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    const any = fc.record({
      stage: fc.constantFrom<Stage>('ticket', 'handshake', 'stream'),
      verdict: fc.constantFrom<Verdict>('stop', 'renew', 'wait', 'backoff'),
      ...{ summary: text, advice: text, endedAt: count, uptimeMs: count, framesReceived: count },
      ...{ status: mayBe(count), reason: mayBe(text), meaning: mayBe(text), detail: mayBe(text) },
    });
    fc.assert(
      fc.property(any, (made) => {
        const error = new TradeFeedError({ code: 'connection-lost', ...made });
        expect(readFailure(written(error)).toJSON()).toEqual(error.toJSON());
      }),
    );
  });

  it('takes the summary from the message, with the detail but without the advice', () => {
    const summaryOf = (message: string, advice = 'Wait.') => readFailure({ ...fields, message, advice }).summary;
    expect(summaryOf('It said: Wait. No. Wait. See a/page.md')).toBe('It said: Wait. No.');
    expect(summaryOf('It ended. Wait.')).toBe('It ended.');
    expect(summaryOf('It ended.', '')).toBe('It ended.');
    const read = readFailure(written(before));
    expect(read.summary).toBe("The service can't issue tickets right now (HTTP 503).");
    expect(readFailure(written(before.toPublic())).summary).toBe(before.summary);
    expect(read).not.toHaveProperty('detail');
    const changed = copyFailure(read, { advice: 'Stop.' }).message;
    expect(changed).toMatch(/^The service can't issue tickets right now \(HTTP 503\)\. Stop\. See \S+$/);
  });
});

it.each([new Error('secret'), undefined])(
  'failureOf makes an error of the app the cause of a failure that stops: %p',
  (error) => {
    const failure = failureOf(error);
    expect(failureOf(failure)).toBe(failure);
    expect(failure).toMatchObject({ code: 'relay-source-failed', stage: 'stream', verdict: 'stop' });
    expect([failure.cause, failure.toPublic().cause]).toEqual([error, undefined]);
    expect(failure.message).not.toContain('secret');
  },
);

it.each([
  ['an error', new Error('mine'), / Cause: Error: mine$/],
  ['a text', 'odd', / Cause: odd$/],
  ['an object', { odd: 'private' }, /See \S+$/],
])('the record of a feed that %s of the app has stopped ends with it, if it is text', (_what, cause, words) => {
  expect(new EventRecord({ type: 'stopped', at: 1, failure: failureOf(cause) }).msg).toMatch(words);
});

describe('the option `classify`', () => {
  const facts: FailureFacts = { stage: 'ticket', status: 503, retryAfterMs: 5, endedAt: 1, cause: new Error('below') };
  const usual = createTradeFeedError(facts);

  const classified = (options: Parameters<typeof applyClassify>[0]) =>
    applyClassify(options, createTradeFeedError(facts));

  it('is called once with the failure and its default verdict, and returning that changes nothing', () => {
    const classify = jest.fn<(failure: TradeFeedError, verdict: Verdict) => Verdict>((_failure, verdict) => verdict);
    const error = classified({ classify });
    expect(classify.mock.calls).toEqual([[error, 'backoff']]);
    for (const each of [error, classified({}), classified({ classify: undefined })])
      expect((each as TradeFeedError).toJSON()).toEqual(usual.toJSON());
    expect(classify.mock.calls[0]?.[0]).toBe(error);
  });

  it.each<Verdict>(['stop', 'renew', 'wait'])('changes the verdict, and the advice says so: %s', (verdict) => {
    const error = classified({ classify: () => verdict }) as TradeFeedError;
    const advice = `Your option \`classify\` changed the verdict from backoff to ${verdict}.`;
    const message = usual.message.replace(usual.advice, advice);
    expect(error.toJSON()).toEqual({ ...usual.toJSON(), verdict, advice, message });
    expect(error.cause).toBe(facts.cause);
  });

  it.each([new Error('mine'), undefined])('passes its exception on unchanged: %p', (thrown) => {
    const classify = () => {
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- as a user's function might
      throw thrown;
    };
    expect(classified({ classify })).toBe(thrown);
    expect(thrownByOption('classify', thrown)).toBe(thrown);
  });

  it('stops with a failure that it throws, even if its verdict was different', () => {
    const thrown = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: '' });
    const failure = classified({
      classify: () => {
        throw thrown;
      },
    });
    expect(thrown.verdict).toBe('backoff');
    expect(failure).toMatchObject({ code: 'server-shutdown', verdict: 'stop', closeCode: 1001 });
    expect(failure).toMatchObject({ advice: 'Your option `classify` threw this.', meaning: thrown.meaning });
  });

  it('stops if it returns what is not a verdict', () => {
    const message = expect.stringContaining('`classify` must be a function that returns stop, renew, wait, backoff.');
    for (const given of ['retry', undefined, Promise.resolve('stop'), 'toString'])
      expect(classified({ classify: () => given as Verdict })).toMatchObject({
        ...{ code: 'invalid-options', verdict: 'stop', message },
      });
  });
});
