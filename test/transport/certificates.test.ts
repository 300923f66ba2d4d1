/** @lane processes */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import nodeTls from 'node:tls';
import { tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { networkDefaults, setNetworkDefaults } from '../../src/worker/settings.js';
import { certificateFor } from '../support/certificate.js';
import { optionsFor, outcomeOf, until } from '../support/feed.js';
import { ca, failuresOf, tls } from '../support/two-origins.js';
import { startTestLimitMs } from '../support/wait-for.js';
import { accept, close, type HandshakeStep, issue, startWire, text } from '../support/wire.js';

jest.setTimeout(startTestLimitMs);

const other = await certificateFor();
const day = 24 * 3_600_000;
const noon = Date.parse('2011-01-01T12:00:00Z');

/** Accepts a handshake. From then on, the service has another certificate. */
const turning =
  (...sent: readonly Buffer[]): HandshakeStep =>
  (peer, service, n) => {
    service.present(other);
    accept(...sent)(peer, service, n);
  };

const threads: readonly (readonly [string, TradeFeedOptions])[] = [
  ['on this thread', {}],
  ['in a worker', { receiveIn: 'worker' }],
];

describe.each(threads)('a feed that has worked, %s', (_, options) => {
  it('goes on after the ticket endpoint has had a wrong certificate for a while', async () => {
    await using wire = await startWire({
      tls,
      handshake: [turning(text('a'), close(1001)), accept(text('b'))],
    });
    let refused = 0;
    const events = await until(tradeFeedEvents$('market', optionsFor(wire, { ...ca, ...options })), (event) => {
      if (event.type === 'disconnected' && event.failure.code === 'untrusted-certificate') refused += 1;
      if (refused === 2) wire.present(tls);
      return event.type === 'frame' && event.text() === 'b';
    });
    const [first, ...others] = failuresOf(events);
    expect([first, new Set(others)]).toEqual(['server-shutdown', new Set(['untrusted-certificate'])]);
    const verdicts = events.flatMap((event) => (event.type === 'reconnecting' ? event.verdict : []));
    expect(new Set(verdicts)).toEqual(new Set(['backoff']));
  });

  it('goes on after the handshake has met a wrong certificate', async () => {
    await using wrong = await startWire({ tls: other });
    await using right = await startWire({ tls, handshake: [accept(text('a'), close(1001)), accept(text('b'))] });
    const ticket = [right, wrong, right].map(({ wssUrl }) => issue({ wss_url: wssUrl }));
    await using wire = await startWire({ tls, ticket });
    const events = await until(
      tradeFeedEvents$('market', optionsFor(wire, { ...ca, ...options })),
      (event) => event.type === 'frame' && event.text() === 'b',
    );
    expect(failuresOf(events)).toEqual(['server-shutdown', 'untrusted-certificate']);
  });

  // It can't be called in a worker.
  (options.receiveIn ? it.skip : it)('asks `classify`, which gets the verdict `backoff`', async () => {
    await using wire = await startWire({ tls, handshake: [turning(close(1001))] });
    const asked: string[] = [];
    const classify: TradeFeedOptions['classify'] = ({ code }, verdict) => {
      asked.push(`${code} ${verdict}`);
      return code === 'untrusted-certificate' ? 'stop' : verdict;
    };
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { ...ca, classify }));
    await expect(until(events$, () => false)).rejects.toMatchObject({ code: 'untrusted-certificate', verdict: 'stop' });
    expect(asked).toEqual(['server-shutdown backoff', 'untrusted-certificate backoff']);
  });
});

it('a worker that takes over from one that has worked backs off as well', async () => {
  await using wire = await startWire({
    tls,
    handshake: [turning(text('a')), accept(text('b'))],
  });
  const { workers } = await import('../support/start-worker.js');
  const events$ = tradeFeedEvents$('market', optionsFor(wire, { ...ca, receiveIn: 'worker' }));
  const events = await until(events$, (event) => {
    if (event.type === 'frame' && event.text() === 'a') void workers.started.at(-1)?.terminate();
    if (event.type === 'disconnected' && event.failure.code === 'untrusted-certificate') wire.present(tls);
    return event.type === 'frame' && event.text() === 'b';
  });
  expect(failuresOf(events).slice(0, 2)).toEqual(['receiver-failed', 'untrusted-certificate']);
});

// Since Node 22.19.
const { getCACertificates, setDefaultCACertificates } = nodeTls as {
  readonly getCACertificates?: (type?: string) => readonly string[];
  readonly setDefaultCACertificates?: (ca: readonly string[]) => void;
};
const itWithNewerNode = setDefaultCACertificates ? it : it.skip;
const trust = (...more: readonly string[]): void =>
  setDefaultCACertificates?.([...(getCACertificates?.('bundled') ?? []), ...more]);

describe.each(threads)('a feed %s', (where, options) => {
  let before: ReturnType<typeof networkDefaults>;
  beforeEach(() => {
    before = networkDefaults();
  });
  afterEach(() => {
    setNetworkDefaults(before);
    setDefaultCACertificates?.([...(getCACertificates?.('bundled') ?? []), ...(getCACertificates?.('extra') ?? [])]);
  });

  it("doesn't go below the TLS version that the program has set", async () => {
    await using wire = await startWire({ tls: { ...tls, maxVersion: 'TLSv1.2' } as typeof tls });
    nodeTls.DEFAULT_MIN_VERSION = 'TLSv1.3';
    const { failure } = await outcomeOf(optionsFor(wire, { ...ca, ...options }));
    expect(failure.code).toBe('ticket-endpoint-unreachable');
    expect(failure.detail).toMatch(/TLS: .*protocol/);
    nodeTls.DEFAULT_MIN_VERSION = 'TLSv1.2';
    const events$ = tradeFeedEvents$('market', optionsFor(wire, { ...ca, ...options }));
    await until(events$, ({ type }) => type === 'opened');
  });

  itWithNewerNode('trusts at its next attempt what the program trusts meanwhile', async () => {
    await using wire = await startWire({
      tls,
      handshake: [turning(text('a'), close(1001)), accept(text('b'))],
    });
    trust(tls.cert);
    const events = await until(tradeFeedEvents$('market', optionsFor(wire, options)), (event) => {
      if (event.type === 'disconnected' && event.failure.code === 'untrusted-certificate') trust(other.cert);
      return event.type === 'frame' && event.text() === 'b';
    });
    expect(failuresOf(events).slice(0, 2)).toEqual(['server-shutdown', 'untrusted-certificate']);
  });

  it("says whether it failed in the worker if a certificate isn't trusted", async () => {
    await using wire = await startWire({ tls: other });
    const { failure } = await outcomeOf(optionsFor(wire, { ...ca, ...options }));
    expect(failure.code).toBe('untrusted-certificate');
    expect(failure.message.includes('in the worker')).toBe(where === 'in a worker');
  });
});

describe('the message of a refused certificate', () => {
  const messageFor = async (certificate: { readonly cert: string; readonly key: string }) => {
    await using wire = await startWire({ tls: certificate });
    return (await outcomeOf(optionsFor(wire, { tls: { ca: certificate.cert } }))).failure.message;
  };

  it.each([
    ['expired', noon - day, noon],
    ["isn't valid yet", Date.now() + day, Date.now() + 2 * day],
  ])("that %s names its dates and this machine's clock, and says that a CA can't help", async (_, from, to) => {
    const [notBeforeDate, notAfterDate] = [from, to].map((ms) => new Date(Math.floor(ms / 1_000) * 1_000)) as [
      Date,
      Date,
    ];
    const message = await messageFor(await certificateFor(undefined, { notBeforeDate, notAfterDate }));
    expect(message).toContain(`valid from ${notBeforeDate.toISOString()} to ${notAfterDate.toISOString()}`);
    expect(message).toContain(`this machine's clock says ${new Date().toISOString().slice(0, 10)}`);
    expect(message).toMatch(/another CA .*can't help/);
    expect(message).not.toContain('to its CA');
  });

  it("for another host says so, and that a CA can't help", async () => {
    const message = await messageFor(await certificateFor('elsewhere.example'));
    expect(message).toMatch(/is for another host .*127\.0\.0\.1.*another CA .*can't help/);
  });

  it('of an unknown CA advises to set it', async () => {
    await using wire = await startWire({ tls: other });
    expect((await outcomeOf(optionsFor(wire, ca))).failure.message).toContain('set `tls: { ca }` to its CA');
  });
});
