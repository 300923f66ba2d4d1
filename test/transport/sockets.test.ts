/** @lane clock */
import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Agent as HttpAgent } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { asyncScheduler, defer, noop, VirtualTimeScheduler } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { Agent, Client } from 'undici';
import { resolveOptions } from '../../src/feed/options.js';
import { createTradeFeedError, type FeedEvent, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { type Connect, connectSocket } from '../../src/transport/connect.js';
import { MAX_IDLE_MS, renewIdle, reusableSockets, spareSocket } from '../../src/transport/sockets.js';
import { closed, optionsFor, until } from '../support/feed.js';
import { type Fate, type Gate, portOf, startGate } from '../support/gate.js';
import {
  after,
  ca,
  dropped,
  expired,
  failuresOf,
  frames,
  later,
  opened,
  stable,
  startTwoOrigins,
  tls,
  transports,
  turns,
  type TwoOrigins,
} from '../support/two-origins.js';
import { waitFor } from '../support/wait-for.js';
import { close, issue, refuse, startWire } from '../support/wire.js';
import { manualClock } from '../testing/service-under-test.js';

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

  it.each([
    ['connection-stalled', true],
    ['connection-lost', false],
  ] as const)('destroys a stored client after %s: %s', (code, isDestroyed) => {
    const [sockets, client] = [createSockets(), clientOf()];
    sockets.storeClient(client);
    sockets.attemptFailed(createTradeFeedError({ stage: 'stream', code }));
    expect(client.isDestroyed).toBe(isDestroyed);
    expect(sockets.takeClient()).toBe(isDestroyed ? undefined : client);
    expect(sockets.takeClient()).toBeUndefined();
  });

  it('destroys a stored client when the subscription ends, even if it is stored later', () => {
    const [sockets, idle, late] = [createSockets(), clientOf(), clientOf()];
    sockets.storeClient(idle);
    sockets.release();
    expect(idle.isDestroyed).toBe(true);
    sockets.storeClient(late);
    expect(late.isDestroyed).toBe(true);
  });

  it('opens no spare connection once released', async () => {
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

describe('the spare connection', () => {
  it.each(transports)('opens while the ticket is requested, and serves the handshake: %s', async (_, script) => {
    await using service: TwoOrigins = await startTwoOrigins({
      ...script,
      // Issues the ticket once the connection and its TLS handshake are done.
      tickets: (granted) => [granted, after(() => service.stream.connections === 2, granted)],
      handshake: [expired, frames],
    });
    await opened(service, 2, ca);
    expect(service.gate.connections).toBe(2);
    expect(service.stream.handshakes).toHaveLength(2);
    const last = [...service.stream.open].at(-1);
    if ('tls' in script) expect((last as TLSSocket).isSessionReused()).toBe(true);
  });

  it("isn't opened if a user's agent connects", async () => {
    await using service = await startTwoOrigins({
      tickets: (granted) => [granted, later(granted)],
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
    await opened(service, 2);
    await waitFor(() => service.gate.open.size === 0);
    expect(service.gate.connections).toBe(2);
    expect(service.stream.handshakes).toHaveLength(1);
    expect(elsewhere.handshakes).toHaveLength(1);
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
        after(
          () => service.stream.connections === 2,
          (response, wire, n) => {
            act([...service.stream.open].at(-1) as Socket);
            after(() => service.gate.open.size === 0, granted)(response, wire, n);
          },
        ),
      ],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2, ca);
    expect(failuresOf(events)).toEqual(['access-expired']);
    expect(service.gate.connections).toBe(3);
  });

  it("isn't opened after an attempt that never reached the stream, as the service may be in trouble", async () => {
    await using service: TwoOrigins = await startTwoOrigins({
      tickets: (granted) => [
        granted,
        after(() => service.stream.connections === 2, refuse(503)),
        later(refuse(503)),
        granted,
      ],
      handshake: [expired, frames],
    });
    const events = await opened(service, 2);
    expect(failuresOf(events)).toHaveLength(3);
    expect(service.gate.connections).toBe(3);
  });
});

describe('standby', () => {
  /** Starts a feed with standby on virtual time. */
  const started = async (service: TwoOrigins, { backoff: policy, ...options }: TradeFeedOptions = {}) => {
    const { scheduler, advance } = manualClock();
    const events: FeedEvent[] = [];
    const errors: unknown[] = [];
    const backoff = { stableAfterMs: 0, scheduler, random: () => 1, ...policy };
    const feed$ = tradeFeedEvents$('market', optionsFor(service, { standby: true, ...ca, ...options, backoff }));
    const subscription = feed$.subscribe({
      next: (event) => events.push(event),
      error: (error: unknown) => errors.push(error),
    });
    const comesTo = (n: number) =>
      waitFor(() => {
        advance(0);
        return events.some((event) => event.type === 'opened' && event.connection === n);
      });
    await comesTo(1);
    return { advance, events, errors, comesTo, [Symbol.dispose]: () => subscription.unsubscribe() };
  };
  const last = (sockets: ReadonlySet<Socket>): Socket => [...sockets].at(-1) as Socket;
  /** Starts a feed, and waits until its standby connection is open. */
  const standingBy = async () => {
    const service = await startTwoOrigins({ tls, handshake: [frames] });
    const feed = await started(service);
    await turns();
    expect(service.gate.connections).toBe(1);
    feed.advance(100);
    await waitFor(() => service.stream.connections === 2);
    return {
      ...service,
      feed,
      /** Closes the stream with a code whose verdict is `renew`. */
      expire: () => void [...service.stream.open][0]?.write(close(4003, 'access expired')),
      [Symbol.asyncDispose]: async () => {
        feed[Symbol.dispose]();
        await service[Symbol.asyncDispose]();
      },
    };
  };

  it('keeps one connection open for the next handshake, and opens another once the new stream is open', async () => {
    await using service = await standingBy();
    service.feed.advance(49_000);
    await turns();
    expect([service.gate.connections, service.stream.handshakes.length]).toEqual([2, 1]);
    expect([service.tickets.tickets.length, service.tickets.connections]).toEqual([1, 1]);
    service.expire();
    await service.feed.comesTo(2);
    expect([service.gate.connections, service.tickets.tickets.length]).toEqual([2, 2]);
    service.feed.advance(100);
    await waitFor(() => service.stream.connections === 3);
    expect(service.gate.open.size).toBe(2);
  });

  it('reopens it after a delay when the server closes it', async () => {
    await using service = await standingBy();
    const socket = last(service.gate.open);
    last(service.stream.open).end();
    await closed(socket);
    service.feed.advance(999);
    await turns();
    expect(service.gate.connections).toBe(2);
    service.feed.advance(1);
    await waitFor(() => service.stream.connections === 3);
    expect(service.gate.open.size).toBe(2);
  });

  it('reopens the connection to the ticket endpoint after the service closed it', async () => {
    await using service = await standingBy();
    last(service.tickets.open).end();
    await waitFor(() => service.tickets.connections === 2);
    service.expire();
    await service.feed.comesTo(2);
    expect([service.tickets.tickets.length, service.tickets.connections]).toEqual([2, 2]);
  });

  it('stops the feed with what `backoff.random` throws while a connection is renewed, and closes all', async () => {
    await using service = await startTwoOrigins({ tls, fates: (stream) => [stream, 'reset'], handshake: [frames] });
    const thrown = new Error('no dice');
    const random = () => {
      throw thrown;
    };
    using feed = await started(service, { backoff: { random } });
    feed.advance(100);
    await waitFor(() => feed.errors.length > 0);
    expect(feed.errors[0]).toBe(thrown);
    expect(feed.events.filter(({ type }) => type === 'disconnected' || type === 'stopped')).toEqual([]);
    await waitFor(() => service.gate.open.size === 0 && service.tickets.open.size === 0);
  });

  it("opens nothing by default, or if a user's dispatcher and agent connect", async () => {
    const [dispatcher, agent] = [new Agent({ pipelining: 0 }), new HttpAgent()];
    for (const options of [{ standby: false }, { dispatcher, agent }]) {
      await using service = await startTwoOrigins({ handshake: [frames] });
      using feed = await started(service, options);
      feed.advance(60_000);
      await turns();
      expect([service.gate.connections, service.tickets.connections]).toEqual([1, 1]);
    }
    await dispatcher.close();
    agent.destroy();
  });
});

/** Creates a spare socket whose clock the test moves. Collects every socket that it opens. */
const createSpare = (connectTo: Connect = (url) => connectSocket(url, { ca: tls.cert })) => {
  const opened: Socket[] = [];
  const clock = { nowMs: 0 };
  const connect: Connect = (url) => {
    const socket = connectTo(url).on('error', () => undefined);
    opened.push(socket);
    return socket;
  };
  const fail = (thrown: unknown): never => {
    throw thrown;
  };
  const timing = { random: () => 1, scheduler: asyncScheduler };
  const created = spareSocket(connect, timing, fail, () => clock.nowMs);
  return {
    ...created,
    opened,
    clock,
    [Symbol.asyncDispose]: async () => {
      created.drop();
      for (const socket of opened) await closed(socket.destroy());
    },
  };
};

const urlOf = ({ port }: Gate, scheme = 'wss') => new URL(`${scheme}://127.0.0.1:${port}/ws`);

/** Creates a spare socket for a service. The second connection gets a fate, by default that of the others. */
const createSpareTo = async (second?: Fate) => {
  const wire = await startWire({ tls });
  const service = { port: portOf(wire.wssUrl) };
  const gate = await startGate([service, second ?? service, service]);
  const spare = createSpare();
  return {
    ...spare,
    url: urlOf(gate),
    [Symbol.asyncDispose]: async () => {
      await spare[Symbol.asyncDispose]();
      await gate[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
};
/** Connects once, and opens a spare at 0 ms. */
const openSpare = async (isReady: boolean) => {
  const spare = await createSpareTo(isReady ? undefined : 'silence');
  spare.take(spare.url);
  spare.open();
  if (isReady) await once(spare.opened[1] as Socket, 'secureConnect');
  return spare;
};

describe('spareSocket', () => {
  it.each([
    ['ready', true, 49_999, true],
    ['ready', true, 50_000, false],
    ['still connecting', false, 999, true],
    ['still connecting', false, 1_000, false],
  ])('returns a spare that is %s (%s) after %i ms: %s', async (_, isReady, ageMs, isReturned) => {
    await using spare = await openSpare(isReady);
    spare.clock.nowMs = ageMs;
    const taken = spare.take(spare.url);
    expect(spare.opened.indexOf(taken)).toBe(isReturned ? 1 : 2);
    expect(spare.opened[1]?.destroyed).toBe(!isReturned);
  });

  it('returns it once, without listeners', async () => {
    await using spare = await openSpare(true);
    const taken = spare.take(spare.url);
    await turns(1);
    expect([taken.listenerCount('readable'), taken.readableFlowing]).toEqual([0, null]);
    expect(taken.listenerCount('close')).toBe(spare.opened[0]?.listenerCount('close'));
    expect(spare.take(spare.url)).not.toBe(taken);
    spare.drop();
    expect(taken.destroyed).toBe(false);
  });

  it("ignores that it can't connect, because the next connection throws", async () => {
    const refused = new Error('refused');
    let fails = false;
    await using gate = await startGate(['silence']);
    await using spare = createSpare((url) => {
      if (fails) throw refused;
      return connectSocket(url);
    });
    spare.take(urlOf(gate));
    fails = true;
    spare.open();
    expect(() => spare.take(urlOf(gate))).toThrow(refused);
  });

  it('waits until the current connection is closed', async () => {
    await using spare = await createSpareTo();
    const first = spare.take(spare.url);
    await once(first, 'secureConnect');
    for (const count of [2, 3]) {
      spare.standBy(first);
      first.destroy();
      await waitFor(() => spare.opened.length === count);
    }
    expect(spare.opened[1]?.destroyed).toBe(true);
  });
});

describe('renewIdle', () => {
  const waits = [1, 2, 4, 8, 16, 32, 60, 60];
  const starts = waits.map((_, n) => waits.slice(0, n).reduce((sum, each) => sum + each, 0));
  const replaced = [`^ ${MAX_IDLE_MS - 1}ms !`, `${MAX_IDLE_MS + 1_000}ms ^ 999ms !`];

  it.each<[string, lives: string[], random: number, subscriptions: string[], unsubscribed: string]>([
    [
      'opens another connection, with growing waits while the connections do not last',
      ['|', '5s |', '|', '-'],
      1,
      ['(^!)', '1s ^ 4999ms !', '1s 5s 2s (^!)', '1s 5s 2s 4s ^ 999ms !'],
      '13s !',
    ],
    ['waits at most a minute', waits.map(() => '|'), 1, starts.map((s) => (s === 0 ? '(^!)' : `${s}s (^!)`)), '183s !'],
    [
      'starts with a short wait again after an accepted connection',
      ['|', '|', '10s |', '-'],
      1,
      ['(^!)', '1s (^!)', '3s ^ 9999ms !', '14s ^ 999ms !'],
      '15s !',
    ],
    ['waits at least half as long, by chance', ['|', '-'], 0, ['(^!)', '500ms ^ 99ms !'], '600ms !'],
    ['replaces a connection that is too old', ['-', '-'], 1, replaced, `${MAX_IDLE_MS + 2_000}ms !`],
    ['does not wait 0 ms if random returns NaN', ['|', '-'], NaN, ['(^!)', '1s ^ 99ms !'], '1100ms !'],
    ['opens no other connection after it was unsubscribed', ['|', '-'], 1, ['(^!)'], '500ms !'],
  ])('%s', (_title, lives, random, subscriptions, unsubscribed) => {
    const scheduler = new TestScheduler((actual, expected) => expect(actual).toEqual(expected));
    scheduler.run(({ cold, expectObservable, expectSubscriptions }) => {
      const connections = lives.map((life) => cold<never>(life));
      let opened = 0;
      const next$ = defer(() => connections[(opened += 1) - 1] as (typeof connections)[number]);
      expectObservable(next$.pipe(renewIdle({ scheduler, random: () => random })), unsubscribed).toBe('');
      connections.forEach(({ subscriptions: seen }, n) => expectSubscriptions(seen).toBe(subscriptions[n] ?? []));
    });
  });
});
describe('unsubscribing', () => {
  /** Unsubscribes once a condition holds. Checks that all sockets close and no others open. */
  const releasedAfter = async (
    service: TwoOrigins,
    condition: () => boolean,
    options: TradeFeedOptions = {},
  ): Promise<void> => {
    const subscription = tradeFeedEvents$(
      'market',
      optionsFor(service, { backoff: stable, ...ca, ...options }),
    ).subscribe();
    await waitFor(condition);
    subscription.unsubscribe();
    const connections = () => [service.tickets.connections, service.gate.connections];
    await waitFor(() => service.gate.open.size + service.tickets.open.size + service.stream.open.size === 0);
    const before = connections();
    await turns();
    expect(connections()).toEqual(before);
  };

  type Script = Parameters<typeof startTwoOrigins>[0];
  const asked = ({ tickets }: TwoOrigins, count: number) => tickets.tickets.length === count;
  it.each<[string, (service: () => TwoOrigins) => Script, (service: TwoOrigins) => boolean]>([
    [
      'closes an idle spare connection',
      () => ({ tickets: (granted) => [granted, noop] }),
      (service) => service.stream.connections === 2 && asked(service, 2),
    ],
    [
      'closes a spare connection during the TLS handshake',
      () => ({ fates: (stream) => [stream, 'silence'], tickets: (granted) => [granted, noop] }),
      (service) => service.gate.connections === 2 && asked(service, 2),
    ],
    [
      'ends a handshake over a spare connection',
      (service) => ({
        tickets: (granted) => [granted, after(() => service().stream.connections === 2, granted)],
        handshake: [expired, noop],
      }),
      ({ stream }) => stream.handshakes.length === 2,
    ],
    [
      'closes the idle connection of the ticket requests',
      () => ({ handshake: [frames] }),
      ({ stream }) => stream.handshakes.length === 1,
    ],
    [
      'ends a repeated request',
      () => ({ tickets: (granted) => [granted, dropped, noop] }),
      (service) => asked(service, 3),
    ],
  ])('%s', async (_title, script, isReady) => {
    await using service: TwoOrigins = await startTwoOrigins({ tls, handshake: [expired], ...script(() => service) });
    await releasedAfter(service, () => isReady(service));
  });

  it('when a ticket is requested opens no spare connection', async () => {
    await using service = await startTwoOrigins({ handshake: [expired] });
    let requests = 0;
    const events$ = tradeFeedEvents$('market', optionsFor(service, { backoff: stable }));
    await until(events$, ({ type }) => type === 'ticket-requested' && (requests += 1) === 2);
    await turns();
    expect(service.gate.connections).toBe(1);
    expect(service.tickets.tickets).toHaveLength(1);
  });

  it('closes the standby connection', async () => {
    const time = new VirtualTimeScheduler(undefined, 100);
    await using service = await startTwoOrigins({ tls, handshake: [frames] });
    const isReady = () => {
      time.flush();
      return service.stream.connections === 2;
    };
    await releasedAfter(service, isReady, { standby: true, backoff: { ...stable, scheduler: time } });
    expect(time.actions).toEqual([]);
  });
});
