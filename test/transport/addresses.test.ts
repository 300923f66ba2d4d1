/** @lane clock */
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import dns, { type LookupAddress } from 'node:dns';
import { firstValueFrom, of } from 'rxjs';
import { type Feed, requestTicket, tradeFeedEvents$ } from '../../src/index.js';
import { openTunnel } from '../../src/transport/proxy-from-environment.js';
import { startBusyPort } from '../support/busy-port.js';
import { startConnectProxy } from '../support/connect-proxy.js';
import { optionsFor, outcomeOf, until } from '../support/feed.js';
import { freePort } from '../support/free-port.mjs';
import { portOf } from '../support/gate.js';
import { failuresOf } from '../support/two-origins.js';
import { issue, startWire } from '../support/wire.js';

afterEach(() => {
  jest.restoreAllMocks();
});

const v4 = { address: '127.0.0.1', family: 4 };
const v6 = { address: '::1', family: 6 };
const silent = { address: '127.0.0.2', family: 4 };

/** Lets `localhost` have these addresses. `onLookup` is called each time before they are known. */
const resolveTo = (addresses: readonly LookupAddress[], onLookup: (n: number) => void = () => undefined): void => {
  let n = 0;
  const lookup = (_host: string, _options: object, done: (error: null, found: readonly LookupAddress[]) => void) => {
    onLookup((n += 1));
    process.nextTick(done, null, addresses);
  };
  jest.spyOn(dns, 'lookup').mockImplementation(lookup as never);
};

describe('a host with several addresses, one of which answers after more than 250 ms', () => {
  it.each([
    ['before one that refuses', [v4, v6]],
    ['before one that is silent, and one that refuses', [v4, silent, v6]],
    ['before one that is silent', [v4, silent]],
    ['after one that is silent', [silent, v4]],
  ])('gets its ticket in the first attempt: %s', async (_, addresses) => {
    await using wire = await startWire();
    await using busy = await startBusyPort(portOf(wire.baseUrl));
    await using _never = await startBusyPort(1, silent.address, busy.port);
    resolveTo(addresses, (n) => (n > 1 || addresses[0] === silent) && busy.open());
    const options = optionsFor({ baseUrl: `http://localhost:${busy.port}` });
    const ticket = await firstValueFrom(of<Feed>('market').pipe(requestTicket(options)));
    expect(ticket.feed).toBe('market');
    expect(wire.tickets).toHaveLength(1);
  });

  it('gets its handshake in the first attempt', async () => {
    await using stream = await startWire();
    await using busy = await startBusyPort(portOf(stream.wssUrl));
    await using wire = await startWire({ ticket: [issue({ wss_url: `ws://localhost:${busy.port}/ws` })] });
    resolveTo([v4, v6], (n) => n > 1 && busy.open());
    const events = await until(
      tradeFeedEvents$('market', optionsFor(wire)),
      ({ type }) => type !== 'watermark' && type !== 'ticket-requested' && type !== 'ticket-issued',
    );
    expect(failuresOf(events)).toEqual([]);
    expect(stream.handshakes).toHaveLength(1);
  });

  it('gets a tunnel if it is the proxy', async () => {
    await using wire = await startWire();
    await using proxy = await startConnectProxy({ targets: { 'feed.example:443': portOf(wire.baseUrl) } });
    await using busy = await startBusyPort(portOf(proxy.url));
    resolveTo([v4, v6], (n) => n > 1 && busy.open());
    const socket = await openTunnel(new URL(`http://localhost:${busy.port}`), new URL('https://feed.example'));
    expect(socket.destroyed).toBe(false);
    socket.destroy();
  });
});

describe('the failure of a host with several addresses', () => {
  it('names all of them if they refuse', async () => {
    const port = await freePort();
    resolveTo([v4, v6]);
    const { failure } = await outcomeOf(optionsFor({ baseUrl: `http://localhost:${port}` }));
    expect(failure.code).toBe('ticket-endpoint-unreachable');
    expect(failure.message).toMatch(/127\.0\.0\.1:\d+, connect \w+ ::1:/);
  });

  it.each([[[v4, v6]], [[v6, v4]]])('names all of them at the deadline of the attempt: %j', async (addresses) => {
    await using busy = await startBusyPort(1);
    resolveTo(addresses);
    const options = optionsFor({ baseUrl: `http://localhost:${busy.port}` }, { ticketTimeoutMs: 700 });
    const { failure } = await outcomeOf(options);
    expect(failure.code).toBe('ticket-endpoint-unreachable');
    expect(failure.message).toMatch(/no answer in 700 ms from (127\.0\.0\.1 and ::1|::1 and 127\.0\.0\.1)/);
  });
});
