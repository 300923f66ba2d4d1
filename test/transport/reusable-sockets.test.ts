import { Agent as HttpAgent } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it } from '@jest/globals';
import { noop, VirtualTimeScheduler } from 'rxjs';
import { Agent, Client } from 'undici';
import { type FeedEvent, createTradeFeedError, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { resolveOptions } from '../../src/options.js';
import { freshSockets, reusableSockets } from '../../src/transport/reusable-sockets.js';
import { certificateFor } from '../support/certificate.js';
import { closed, optionsFor, until } from '../support/feed.js';
import { type Fate, startGate } from '../support/gate.js';
import {
  after,
  expired,
  failuresOf,
  frames,
  opened,
  stable,
  startTwoOrigins,
  turns,
  type TwoOrigins,
} from '../support/two-origins.js';
import { close, issue, refuse, startWire } from '../support/wire.js';
import { waitFor } from '../support/wait-for.js';

const tls = await certificateFor();
const ca = { tls: { ca: tls.cert } };

/** Both transports of a feed: TCP and TLS. */
const transports = [
  ['TCP', {}],
  ['TLS', { tls }],
] as const;

const clientOf = () => {
  const dispatcher = new Client('http://127.0.0.1:1');
  return {
    dispatcher,
    socket: () => undefined,
    get isDestroyed() {
      return dispatcher.destroyed;
    },
    destroy: () => void dispatcher.destroy(),
  };
};

describe('reusableSockets', () => {
  const createSockets = () => reusableSockets(resolveOptions());

  it('returns a stored client once, and not if it is destroyed', () => {
    const [sockets, client] = [createSockets(), clientOf()];
    expect(sockets.takeClient()).toBeUndefined();
    sockets.storeClient(client);
    expect(sockets.takeClient()).toBe(client);
    expect(sockets.takeClient()).toBeUndefined();
    client.destroy();
    sockets.storeClient(client);
    expect(sockets.takeClient()).toBeUndefined();
  });

  it.each([
    ['connection-stalled', true],
    ['connection-lost', false],
  ] as const)('destroys a stored client after %s: %s', (code, isDestroyed) => {
    const [sockets, client] = [createSockets(), clientOf()];
    sockets.storeClient(client);
    sockets.attemptFailed(createTradeFeedError({ stage: 'stream', code }));
    expect(client.isDestroyed).toBe(isDestroyed);
    expect(sockets.takeClient() === undefined).toBe(isDestroyed);
  });

  it('destroys a stored client with the subscription, also if it is stored later', () => {
    const [sockets, idle, late] = [createSockets(), clientOf(), clientOf()];
    sockets.storeClient(idle);
    sockets.release();
    expect(idle.isDestroyed).toBe(true);
    sockets.storeClient(late);
    expect(late.isDestroyed).toBe(true);
  });

  it('opens no spare connection after the release', async () => {
    await using gate = await startGate(['silence']);
    const sockets = reusableSockets(resolveOptions({ standby: true }));
    const socket = sockets.connectStream(new URL(`ws://127.0.0.1:${gate.port}`));
    sockets.release();
    sockets.openSpare();
    sockets.standBy();
    await waitFor(() => gate.connections === 1);
    await turns();
    expect(gate.connections).toBe(1);
    socket.destroy();
  });
});

describe('freshSockets', () => {
  it('stores nothing: a client is destroyed, and no spare connection is opened', async () => {
    await using gate = await startGate(['silence', 'silence']);
    const [sockets, client] = [freshSockets(resolveOptions({ standby: true })), clientOf()];
    sockets.storeClient(client);
    expect([client.isDestroyed, sockets.takeClient(), sockets.lastFailure()]).toEqual([true, undefined, undefined]);
    const url = new URL(`ws://127.0.0.1:${gate.port}`);
    const opened: Socket[] = [sockets.connectStream(url)];
    sockets.openSpare();
    sockets.standBy();
    opened.push(sockets.connectTicket(url));
    await waitFor(() => gate.connections === 2);
    await turns();
    expect(gate.connections).toBe(2);
    for (const socket of opened) socket.destroy();
  });
});

describe('the spare connection', () => {
  it.each(transports)('is opened while the ticket is requested, and used by the handshake: %s', async (_, script) => {
    await using service: TwoOrigins = await startTwoOrigins({
      ...script,
      // The ticket is issued when the connection and its TLS handshake are done.
      tickets: (granted) => [granted, after(() => service.stream.connections === 2, granted)],
      handshake: [expired, frames],
    });
    await opened(service, 2, ca);
    expect(service.gate.connections).toBe(2);
    expect(service.stream.handshakes).toHaveLength(2);
  });

  it('resumes the TLS session', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [expired, frames] });
    await opened(service, 2, ca);
    const sockets = [...service.stream.open] as TLSSocket[];
    expect(sockets.at(-1)?.isSessionReused()).toBe(true);
  });

  it('is used while it still connects', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [expired, frames] });
    await opened(service, 2, ca);
    expect(service.gate.connections).toBe(2);
  });

  it('is not opened before the first ticket', async () => {
    await using service = await startTwoOrigins({ tickets: () => [noop] });
    const subscription = tradeFeedEvents$('market', optionsFor(service)).subscribe();
    await waitFor(() => service.tickets.tickets.length === 1);
    await turns();
    expect(service.gate.connections).toBe(0);
    subscription.unsubscribe();
  });

  it("is not opened if a user's agent connects", async () => {
    await using service = await startTwoOrigins({
      tickets: (granted) => [granted, (response, wire, n) => void turns().then(() => granted(response, wire, n))],
      handshake: [expired, frames],
    });
    const agent = new HttpAgent();
    await opened(service, 2, { agent });
    expect(service.gate.connections).toBe(2);
    agent.destroy();
  });

  it('is dropped if the new ticket names another origin', async () => {
    await using elsewhere = await startWire();
    await using service: TwoOrigins = await startTwoOrigins({
      tickets: (granted) => [
        granted,
        after(() => service.stream.connections === 2, issue({ wss_url: elsewhere.wssUrl })),
      ],
      handshake: [expired],
    });
    const events$ = tradeFeedEvents$('market', optionsFor(service, { backoff: stable }));
    await until(events$, (event) => {
      const isOpen = event.type === 'opened' && event.connection === 2;
      return isOpen;
    });
    await waitFor(() => service.gate.open.size === 0);
    expect(service.gate.connections).toBe(2);
    expect(service.stream.handshakes).toHaveLength(1);
    expect(elsewhere.handshakes).toHaveLength(1);
  });

  it('is used for another path of the same origin', async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tickets: (granted) => [
        granted,
        (response, wire, n) => issue({ wss_url: service.wssUrl.replace('/ws', '/other?a=b') })(response, wire, n),
      ],
      handshake: [expired, frames],
    });
    await opened(service, 2);
    expect(service.gate.connections).toBe(2);
    expect(service.stream.handshakes.map(({ url }) => url)).toEqual(['/ws', '/other?a=b']);
  });

  it.each<Fate>(['reset', 'end', 'garbage'])(
    'is dropped silently if it fails (%s), and the handshake opens a new connection',
    async (fate) => {
      await using service: TwoOrigins = await startTwoOrigins({
        tls,
        fates: (stream) => [stream, fate, stream],
        tickets: (granted) => [
          granted,
          after(() => service.gate.connections === 2 && service.gate.open.size === 0, granted),
        ],
        handshake: [expired, frames],
      });
      const events = await opened(service, 2, ca);
      expect(failuresOf(events)).toEqual(['access-expired']);
      expect(service.gate.connections).toBe(3);
    },
  );

  it.each<[string, (socket: Socket) => void]>([
    ['closed', (socket) => socket.end()],
    ['sent data on', (socket) => socket.write('HTTP/1.1 408 Request Timeout\r\n\r\n')],
  ])('is dropped if the server %s it', async (_, act) => {
    await using service: TwoOrigins = await startTwoOrigins({
      tls,
      tickets: (granted) => [
        granted,
        (response, wire, n) =>
          void waitFor(() => service.stream.connections === 2)
            .then(() => act([...service.stream.open].at(-1) as Socket))
            .then(() => waitFor(() => service.gate.open.size === 0))
            .then(() => granted(response, wire, n)),
      ],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2, ca);
    expect(failuresOf(events)).toEqual(['access-expired']);
    expect(service.gate.connections).toBe(3);
  });

  it('is not opened after an attempt that did not reach the stream: the service may be in trouble', async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tickets: (granted) => [
        granted,
        after(() => service.stream.connections === 2, refuse(503)),
        (response, wire, n) => void turns().then(() => refuse(503)(response, wire, n)),
        granted,
      ],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2);
    expect(failuresOf(events)).toHaveLength(3);
    expect(service.gate.connections).toBe(3);
  });

  it('is destroyed with an attempt that failed before its handshake', async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tickets: (granted) => [granted, after(() => service.stream.connections === 2, refuse(503))],
      handshake: [expired],
    });
    const backoff = { stableAfterMs: 0, initialDelayMs: 60_000, maxDelayMs: 60_000 };
    const subscription = tradeFeedEvents$('market', optionsFor(service, { backoff })).subscribe();
    await waitFor(() => service.tickets.tickets.length === 2);
    await waitFor(() => service.gate.connections === 2 && service.gate.open.size === 0);
    subscription.unsubscribe();
  });
});

describe('standby', () => {
  /** Starts a feed with standby on virtual time. */
  const started = async (
    service: TwoOrigins,
    connection = 1,
    { backoff: policy, ...options }: TradeFeedOptions = {},
  ) => {
    const time = new VirtualTimeScheduler(undefined, 0);
    const events: FeedEvent[] = [];
    const errors: unknown[] = [];
    const backoff = { stableAfterMs: 0, scheduler: time, random: () => 1, ...policy };
    const feed$ = tradeFeedEvents$('market', optionsFor(service, { standby: true, ...ca, ...options, backoff }));
    const subscription = feed$.subscribe({
      next: (event) => events.push(event),
      error: (error: unknown) => errors.push(error),
    });
    const advance = (ms: number) => {
      time.maxFrames = time.frame + ms;
      time.flush();
      time.frame = time.maxFrames;
    };
    const isOpen = (n: number) => events.some((event) => event.type === 'opened' && event.connection === n);
    const comesTo = (n: number) =>
      waitFor(() => {
        advance(0);
        return isOpen(n);
      });
    await comesTo(connection);
    return {
      advance,
      events,
      errors,
      comesTo,
      [Symbol.dispose]: () => subscription.unsubscribe(),
    };
  };
  const last = (sockets: ReadonlySet<Socket>): Socket => [...sockets].at(-1) as Socket;

  it('keeps one connection open while the stream is open, and requests no ticket', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    using feed = await started(service);
    await turns();
    expect(service.gate.connections).toBe(1);
    feed.advance(100);
    await waitFor(() => service.stream.connections === 2);
    feed.advance(49_000);
    await turns();
    expect(service.gate.connections).toBe(2);
    expect(service.stream.handshakes).toHaveLength(1);
    expect(service.tickets.tickets).toHaveLength(1);
    expect(service.tickets.connections).toBe(1);
  });

  it('uses it for the next handshake, and opens another one beside the new stream', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    using feed = await started(service);
    feed.advance(100);
    await waitFor(() => service.stream.connections === 2);
    const [stream] = service.stream.open;
    stream?.write(close(4003, 'access expired'));
    await feed.comesTo(2);
    expect(service.gate.connections).toBe(2);
    expect(service.tickets.tickets).toHaveLength(2);
    feed.advance(100);
    await waitFor(() => service.stream.connections === 3);
    expect(service.gate.open.size).toBe(2);
  });

  it('opens it again when the server closes it, with growing waits, and never two', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    using feed = await started(service);
    feed.advance(100);
    for (const [count, waitMs] of [
      [2, 1_000],
      [3, 2_000],
      [4, 4_000],
    ] as const) {
      await waitFor(() => service.stream.connections === count);
      const socket = last(service.gate.open);
      last(service.stream.open).end();
      await closed(socket);
      await turns();
      feed.advance(waitMs - 1);
      await turns();
      expect(service.gate.connections).toBe(count);
      feed.advance(1);
    }
    await waitFor(() => service.stream.connections === 5);
    expect(service.gate.open.size).toBe(2);
  });

  it('replaces it before it is too old', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    using feed = await started(service);
    feed.advance(100);
    await waitFor(() => service.stream.connections === 2);
    const first = last(service.gate.open);
    feed.advance(50_000);
    await closed(first);
    feed.advance(1_000);
    await waitFor(() => service.stream.connections === 3);
    expect(service.gate.open.size).toBe(2);
  });

  it('tries again with growing waits if it is refused', async () => {
    await using service = await startTwoOrigins({ tls, fates: (stream) => [stream, 'reset'], handshake: [frames] });
    using feed = await started(service);
    feed.advance(100);
    for (const count of [2, 3, 4]) {
      await waitFor(() => service.gate.connections === count && service.gate.open.size === 1);
      await turns();
      feed.advance(1_000 * 2 ** (count - 2));
    }
    expect(failuresOf(feed.events)).toEqual([]);
  });

  it('keeps a connection to the ticket endpoint after the service closed the last one', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    using feed = await started(service);
    feed.advance(100);
    await waitFor(() => service.stream.connections === 2);
    last(service.tickets.open).end();
    await waitFor(() => service.tickets.connections === 2);
    const [stream] = service.stream.open;
    stream?.write(close(4003, 'access expired'));
    await feed.comesTo(2);
    expect(service.tickets.connections).toBe(2);
    expect(service.tickets.tickets).toHaveLength(2);
  });

  describe('with a `backoff.random` that throws', () => {
    const throwing = (thrown: unknown): TradeFeedOptions => ({
      backoff: {
        random: () => {
          throw thrown;
        },
      },
    });

    it('stops the feed with the same error, and closes all connections', async () => {
      await using service = await startTwoOrigins({ tls, fates: (stream) => [stream, 'reset'], handshake: [frames] });
      const thrown = new Error('no dice');
      using feed = await started(service, 1, throwing(thrown));
      feed.advance(100);
      await waitFor(() => feed.errors.length > 0);
      expect(feed.errors[0]).toBe(thrown);
      expect(feed.events.filter(({ type }) => type === 'disconnected' || type === 'stopped')).toEqual([]);
      await waitFor(() => service.gate.open.size === 0 && service.tickets.open.size === 0);
    });

    it('stops the feed with a failure that it throws, also if its verdict is not `stop`', async () => {
      await using service = await startTwoOrigins({ tls, fates: (stream) => [stream, 'reset'], handshake: [frames] });
      const thrown = createTradeFeedError({ stage: 'stream', closeCode: 1001, reason: '' });
      using feed = await started(service, 1, throwing(thrown));
      feed.advance(100);
      await waitFor(() => feed.errors.length > 0);
      expect(feed.errors).toMatchObject([
        { code: 'server-shutdown', verdict: 'stop', advice: 'Your option `backoff` threw this.' },
      ]);
      expect(feed.events.at(-1)).toMatchObject({ type: 'stopped' });
    });

    it('stops the feed at the next attempt if it throws during a wait', async () => {
      await using service = await startTwoOrigins({ tls, fates: (stream) => [stream, stream], handshake: [frames] });
      const thrown = new Error('no dice');
      let fails = false;
      const random = () => {
        if (fails) throw thrown;
        return 1;
      };
      using feed = await started(service, 1, { backoff: { random } });
      feed.advance(100);
      await waitFor(() => service.stream.connections === 2);
      const [stream, standby] = [...service.stream.open];
      stream?.write(close(1001));
      await waitFor(() => failuresOf(feed.events).length === 1);
      fails = true;
      const spare = last(service.gate.open);
      standby?.end();
      await closed(spare);
      await turns();
      expect(feed.errors).toEqual([]);
      feed.advance(30_000);
      await waitFor(() => feed.errors.length > 0);
      expect(feed.errors).toEqual([thrown]);
      expect(service.tickets.tickets).toHaveLength(1);
    });
  });

  it("opens nothing if a user's dispatcher and agent connect", async () => {
    await using service = await startTwoOrigins({ handshake: [frames] });
    const [dispatcher, agent] = [new Agent({ pipelining: 0 }), new HttpAgent()];
    {
      using feed = await started(service, 1, { dispatcher, agent });
      feed.advance(60_000);
      await turns();
    }
    expect(service.gate.connections).toBe(1);
    expect(service.tickets.connections).toBe(1);
    await dispatcher.close();
    agent.destroy();
  });

  it('is off by default', async () => {
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    using feed = await started(service, 1, { standby: false });
    feed.advance(60_000);
    await turns();
    expect(service.gate.connections).toBe(1);
  });
});
