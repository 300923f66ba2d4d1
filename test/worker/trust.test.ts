/** @lane processes */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import nodeTls from 'node:tls';
import { tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { setNetworkDefaults, networkDefaults } from '../../src/worker/settings.js';
import { certificateFor } from '../support/certificate.js';
import { optionsFor, outcomeOf, until } from '../support/feed.js';
import { ca, failuresOf, tls } from '../support/two-origins.js';
import { startTestLimitMs } from '../support/wait-for.js';
import { accept, close, startWire, text } from '../support/wire.js';

jest.setTimeout(startTestLimitMs);

const other = await certificateFor();

// Since Node 22.19.
const { getCACertificates, setDefaultCACertificates } = nodeTls as {
  readonly getCACertificates?: (type?: string) => readonly string[];
  readonly setDefaultCACertificates?: (ca: readonly string[]) => void;
};
const itWithNewerNode = setDefaultCACertificates ? it : it.skip;
const trust = (...more: readonly string[]): void =>
  setDefaultCACertificates?.([...(getCACertificates?.('bundled') ?? []), ...more]);

let before: ReturnType<typeof networkDefaults>;
beforeEach(() => {
  before = networkDefaults();
});
afterEach(() => {
  setNetworkDefaults(before);
  setDefaultCACertificates?.([...(getCACertificates?.('bundled') ?? []), ...(getCACertificates?.('extra') ?? [])]);
});

const threads: readonly (readonly [string, TradeFeedOptions])[] = [
  ['on this thread', {}],
  ['in a worker', { receiveIn: 'worker' }],
];

describe.each(threads)('a feed %s', (where, options) => {
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
      handshake: [
        (peer, service, n) => {
          service.present(other);
          accept(text('a'), close(1001))(peer, service, n);
        },
        accept(text('b')),
      ],
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
