import { afterEach, describe, expect, it } from '@jest/globals';
import { lastValueFrom, map, toArray } from 'rxjs';
import { TradeFeed, TradeFeedModule, type TradeFeedModuleOptions } from '../../src/nestjs/index.js';
import { failurePage } from '../../src/protocol/failures/meanings.js';
import { plantedKey } from '../support/feed.js';
import { accept, close, issue, refuse, refuseHandshake, startWire, text } from '../support/wire.js';
import type { Wire, WireScript } from '../support/wire.js';
import { type App, fast, startApp } from './support.js';

let wire: Wire;
let app: App['app'];

afterEach(async () => {
  await app.close();
  await wire[Symbol.asyncDispose]();
});

const run = async (script: WireScript, options: TradeFeedModuleOptions = {}) => {
  wire = await startWire(script);
  const module = TradeFeedModule.forRoot({
    baseUrl: wire.baseUrl,
    apiKey: plantedKey,
    backoff: { ...fast, jitter: 'none' },
    connect: 'bootstrap',
    ...options,
  });
  const started = await startApp({ imports: [module] });
  ({ app } = started);
  return started.log;
};

/** Checks that the log contains no key and no ticket. */
const expectNoSecret = (logged: string) => {
  expect(wire.tickets.length).toBeGreaterThan(0);
  expect(logged).not.toContain(plantedKey);
  expect(logged).not.toMatch(/planted-ticket-\d/);
};

describe('the log', () => {
  it('reports a whole outage: the end, the attempts, the opening, the gap', async () => {
    const log = await run({
      ticket: [issue(), refuse(503), issue()],
      handshake: [accept(text('one'), close(1001, 'server shutdown')), refuseHandshake(503), accept()],
    });
    await log.line(/^Frames may be missing/);
    expect(log.ofFeeds).toEqual([
      'log Connected to market (connection 1)',
      `warn Disconnected, server-shutdown: The service shut down (close code 1001, "server shutdown"). Nothing to do: the feed reconnects with backoff. See ${failurePage('server-shutdown')}`,
      'warn Reconnect 1 in 1 ms',
      `warn Disconnected, credential-service-unavailable: The service cannot issue tickets at the moment (HTTP 503). Nothing to do: the request is repeated with backoff. See ${failurePage('credential-service-unavailable')}`,
      'warn Reconnect 2 in 2 ms',
      `warn Disconnected, capacity-full: The service has no room for another user (HTTP 503). The third failure in a row: \`npx rx-trade-feed doctor\` finds the cause, or see ${failurePage('capacity-full')}`,
      'warn Reconnect 3 in 4 ms',
      'log Connected to market (connection 2)',
      expect.stringMatching(/^warn Frames may be missing: \d+ ms from \d{4}-\d\d-\d\dT\S+Z on$/),
    ]);
    expect(new Set(log.lines.filter(({ text }) => text.includes('Reconnect')).map(({ context }) => context))).toEqual(
      new Set(['TradeFeed']),
    );
    expectNoSecret(log.raw);
  });

  it('reports a stop with its advice, as an error', async () => {
    const log = await run({ handshake: [accept(close(4001, 'connection replaced'))] });
    const { level, text: line } = await log.line(/^Stopped/);
    expect(level).toBe('error');
    expect(line).toMatch(/Another connection of the same account took over.*Find the other client/);
    expect(app.get(TradeFeed).status).toMatchObject({ state: 'stopped', failure: { closeCode: 4001 } });
  });

  it('removes the ticket from a close reason that quotes it', async () => {
    const log = await run({ handshake: [accept(close(4001, 'replaced planted-ticket-1'))] });
    await log.line(/^Stopped/);
    expectNoSecret(log.raw);
  });

  it('reports where the application threw an exception', async () => {
    const classify = () => {
      throw new RangeError('of the application');
    };
    const log = await run({ handshake: [accept(close(1001))] }, { classify });
    await log.line(/^Stopped, relay-source-failed: .* Cause: RangeError: of the application$/);
    await log.line(/^An exception stopped the feed: RangeError: of the application$/);
    expect(log.raw).toContain('feed-log.test');
  });

  it('reports where an operator of `select` threw an error, and no stop of the feed', async () => {
    const log = await run({ handshake: [accept(text('one'))] });
    await log.line(/^Connected/);
    const select = map((): unknown => {
      throw new RangeError('of the operator');
    });
    const feed = app.get(TradeFeed);
    const types = await lastValueFrom(
      feed.relay.messages$({ select }).pipe(
        map(({ type }) => type),
        toArray(),
      ),
    );
    expect(types.at(-1)).toBe('connect-again');
    const stop = 'A topic of `select` stopped: RangeError: of the operator';
    expect(log.ofFeeds.filter((line) => line.includes('stopped'))).toEqual([`error ${stop}`]);
    expect(log.raw).toContain('feed-log.test');
    expect(feed.status.state).not.toBe('stopped');
    expectNoSecret(log.raw);
  });
});
