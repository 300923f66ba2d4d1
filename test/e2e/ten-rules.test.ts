/** @lane processes */
import { describe, expect, it, jest } from '@jest/globals';
import { filter, firstValueFrom, type Subscription, take, tap, toArray } from 'rxjs';
import { type FeedEvent, logEvents, tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { itInCi } from '../support/cases.js';
import { everythingIn } from '../support/everything-in.js';
import { fakeTimers } from '../support/fake-timers.js';
import { closed, optionsFor, plantedKey, until } from '../support/feed.js';
import { startGate } from '../support/gate.js';
import { runProgram } from '../support/run-program.js';
import { turns } from '../support/two-origins.js';
import { waitFor } from '../support/wait-for.js';
import {
  accept,
  close,
  type HandshakeStep,
  issue,
  refuse,
  refuseHandshake,
  startWire,
  switching,
  text,
  type Wire,
  type WireScript,
  wsFrame,
} from '../support/wire.js';

const allClosed = (wire: Wire): Promise<unknown> => Promise.all([...wire.open].map(closed));

describe('rule 1: nothing of an attempt outlives it', () => {
  it('uses every ticket once, even after failed handshakes', async () => {
    await using wire = await startWire({
      handshake: [
        refuseHandshake(401),
        refuseHandshake(503),
        accept(close(1001)),
        accept(close(4003, 'access expired')),
        accept(text('a')),
      ],
    });
    await firstValueFrom(tradeFeed$('market', optionsFor(wire)));
    expect(wire.handshakes.map(({ headers }) => headers.authorization)).toEqual(
      [1, 2, 3, 4, 5].map((n) => `Bearer planted-ticket-${n}`),
    );
    expect(wire.tickets).toHaveLength(5);
  });

  it.each([
    ['stalled', text('a')],
    ['broken', wsFrame(3, 'a reserved opcode')],
  ])('destroys a %s connection before the next attempt starts', async (_what, frame) => {
    let first: unknown;
    let openAtSecond: boolean | undefined;
    await using wire = await startWire({
      ticket: [
        issue(),
        (response, wire, n) => {
          const isOpen = () => [...wire.open].some((socket) => socket === first);
          // The server may notice the end of the first connection some turns later. A closing handshake would take a second.
          void waitFor(() => !isOpen(), { limitMs: 500 })
            .catch(() => undefined)
            .then(() => {
              openAtSecond = isOpen();
              issue()(response, wire, n);
            });
        },
      ],
      handshake: [
        (peer, wire, n) => {
          first = peer.socket;
          accept(frame)(peer, wire, n);
        },
        accept(text('b')),
      ],
      ignoresClose: true,
    });
    const feed$ = tradeFeed$('market', optionsFor(wire, { idleTimeoutMs: 10 }));
    await firstValueFrom(feed$.pipe(filter((frame) => frame.text() === 'b')));
    expect(openAtSecond).toBe(false);
  });

  it('emits nothing from a connection that has ended', async () => {
    let old: Parameters<HandshakeStep>[0]['socket'] | undefined;
    await using wire = await startWire({
      handshake: [
        (peer, wire, n) => {
          old = peer.socket;
          accept(text('1'), close(1001))(peer, wire, n);
        },
        (peer, wire, n) => {
          old?.write(Buffer.concat([text('late'), close(4001, 'connection replaced')]));
          accept(text('2'))(peer, wire, n);
          void turns(10).then(() => peer.socket.write(text('3')));
        },
      ],
    });
    const frames = await firstValueFrom(tradeFeed$('market', optionsFor(wire)).pipe(take(3), toArray()));
    expect(frames.map((frame) => [frame.text(), frame.connection])).toEqual([
      ['1', 1],
      ['2', 2],
      ['3', 2],
    ]);
  });
});

describe('rule 1, after unsubscribing', () => {
  it.each<FeedEvent['type']>(['opened', 'frame'])('classifies nothing that arrives later, on %s', async (type) => {
    await using wire = await startWire({
      handshake: [
        (peer, wire, n) => {
          accept(text('a'))(peer, wire, n);
          peer.socket.on('data', () => peer.socket.end(close(4001, 'connection replaced')));
        },
      ],
      ignoresClose: true,
    });
    const classify = jest.fn<() => 'stop'>();
    await until(tradeFeedEvents$('market', optionsFor(wire, { classify })), (event) => event.type === type);
    await allClosed(wire);
    await turns(10);
    expect(wire.opcodes).toEqual([8]);
    expect(classify).not.toHaveBeenCalled();
  });
});

describe('rule 4: unsubscribing releases everything', () => {
  const releasedAfter = async (
    wire: Wire,
    ready: (event: FeedEvent | undefined) => boolean,
    options?: TradeFeedOptions,
  ): Promise<void> => {
    const events: FeedEvent[] = [];
    const subscription = tradeFeedEvents$('market', optionsFor(wire, options)).subscribe((event) => events.push(event));
    await waitFor(() => ready(events.at(-1)));
    const { connections } = wire;
    const count = events.length;
    subscription.unsubscribe();
    await allClosed(wire);
    await turns(20);
    expect(wire.connections).toBe(connections);
    expect(events).toHaveLength(count);
  };

  const silent = (): void => undefined;
  const isAsked = (wire: Wire) => wire.tickets.length === 1;
  it.each<[string, WireScript, (wire: Wire, event: FeedEvent | undefined) => boolean, number[]]>([
    ['the ticket request', { ticket: [silent] }, isAsked, []],
    ['the body of the ticket', { ticket: [(response) => void response.writeHead(200).write('{')] }, isAsked, []],
    ['the handshake', { handshake: [silent] }, (wire) => wire.handshakes.length === 1, []],
    ['a backoff', { ticket: [refuse(503, { 'retry-after': '1' })] }, (_, event) => event?.type === 'reconnecting', []],
    [
      'the open stream, with a close frame',
      { handshake: [accept(text('a'))] },
      (_, event) => event?.type === 'frame',
      [8],
    ],
  ])('in %s', async (_when, script, isReady, opcodes) => {
    await using wire = await startWire(script);
    await releasedAfter(wire, (event) => isReady(wire, event));
    expect([wire.tickets.length, wire.opcodes]).toEqual([1, opcodes]);
  });

  it('in the key function', async () => {
    await using wire = await startWire();
    let resolveKey: (key: string) => void = () => undefined;
    const apiKey = () => new Promise<string>((resolve) => (resolveKey = resolve));
    await releasedAfter(wire, (event) => event?.type === 'ticket-requested', { apiKey });
    resolveKey('late-key');
    await turns(20);
    expect(wire.connections).toBe(0);
  });

  it('while the connection to the ticket endpoint is being established', async () => {
    await using silent = await startGate(['silence']);
    const options = optionsFor({ baseUrl: `https://127.0.0.1:${silent.port}` });
    const subscription = tradeFeed$('market', options).subscribe();
    await waitFor(() => silent.open.size > 0);
    subscription.unsubscribe();
    await Promise.all([...silent.open].map(closed));
  });

  it('is what the deadline does to a connection that is being established', async () => {
    await using silent = await startGate(['silence']);
    const options = { baseUrl: `https://127.0.0.1:${silent.port}`, apiKey: 'k', ticketTimeoutMs: 40 };
    const feed$ = tradeFeed$('market', { ...options, backoff: { maxAttempts: 0 } });
    await expect(firstValueFrom(feed$)).rejects.toMatchObject({
      code: 'retries-exhausted',
      cause: { code: 'ticket-endpoint-unreachable' },
    });
    await waitFor(() => silent.connections === 1 && silent.open.size === 0);
  });

  it.each<FeedEvent['type']>(['ticket-requested', 'ticket-issued', 'opened', 'frame'])(
    'inside `next`, on %s',
    async (type) => {
      await using wire = await startWire({ handshake: [accept(text('a'), text('b'))] });
      const events = await until(tradeFeedEvents$('market', optionsFor(wire)), (event) => event.type === type);
      expect(events.at(-1)?.type).toBe(type);
      await allClosed(wire);
      await turns(10);
      expect(wire.tickets.length).toBe(type === 'ticket-requested' ? 0 : 1);
      expect(wire.handshakes.length).toBe(type === 'opened' || type === 'frame' ? 1 : 0);
    },
  );

  it('destroys the socket when the server does not answer the close frame', async () => {
    using _timers = fakeTimers();
    await using wire = await startWire({ handshake: [accept(text('a'))], ignoresClose: true });
    await firstValueFrom(tradeFeed$('market', optionsFor(wire)));
    await waitFor(() => wire.opcodes.length > 0);
    jest.advanceTimersByTime(999);
    await turns(20);
    expect([...wire.open].filter(({ destroyed }) => !destroyed)).not.toHaveLength(0);
    jest.advanceTimersByTime(1);
    await allClosed(wire);
    expect(wire.opcodes).toEqual([8]);
  });
});

describe('rule 5: frames arrive once, in order, and none after unsubscribing', () => {
  it('allows subscribing again inside `next`', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), text('b')), accept(text('c'))] });
    const feed$ = tradeFeed$('market', optionsFor(wire));
    const received: string[] = [];
    await new Promise<void>((resolve) => {
      const first: Subscription = feed$.subscribe((frame) => {
        received.push(frame.text());
        first.unsubscribe();
        feed$.pipe(take(1)).subscribe({ next: (other) => received.push(other.text()), complete: resolve });
      });
    });
    expect(received).toEqual(['a', 'c']);
    await allClosed(wire);
  });
});

describe('rule 8: an exception of the consumer', () => {
  const thrown = new Error('thrown by the consumer');
  const explode = (): never => {
    throw thrown;
  };

  it.each<FeedEvent['type']>(['ticket-requested', 'opened', 'frame', 'disconnected', 'reconnecting'])(
    'in an operator becomes the error and is not retried, on %s',
    async (type) => {
      await using wire = await startWire({ handshake: [accept(text('a'), close(1001))] });
      const thrown$ = tradeFeedEvents$('market', optionsFor(wire)).pipe(
        tap((event) => {
          if (event.type === type) explode();
        }),
      );
      await expect(thrown$.forEach(() => undefined)).rejects.toBe(thrown);
      await allClosed(wire);
      expect(wire.tickets.length).toBeLessThanOrEqual(1);
    },
  );
});

const plantedTicket = 'planted-ticket';

const secret = `${plantedTicket}-1`;
const thenReplaced = [accept(text('a'), close(4001, 'connection replaced'))];
const long = (text: string, times: number) => text.repeat(times);
const longKey = { apiKey: () => long(plantedKey, 3_000) };
const longTicket = [issue({ ticket: long(plantedTicket, 3_000) })];

/** Services that return the secrets in some of the texts they can send. The fuzz tests cover others. */
const hostile: readonly (WireScript & { readonly what: string; readonly options?: TradeFeedOptions })[] = [
  {
    what: 'error bodies and headers',
    ticket: [refuse(401, { 'x-echo': plantedKey, location: `/${plantedKey}` }, plantedKey)],
  },
  { what: 'a redirect', ticket: [refuse(302, { location: `/${plantedKey}` })] },
  { what: 'a body that is not JSON', ticket: [refuse(200, {}, `${secret} ${plantedKey}`)] },
  { what: 'unknown fields', ticket: [issue({ api_key: plantedKey })], handshake: thenReplaced },
  { what: 'an unknown host', ticket: [issue({ wss_url: `wss://${secret}.invalid/` })] },
  {
    what: 'a connection with a long ticket and a long key',
    ticket: [issue({ ticket: long(plantedTicket, 1_000) })],
    handshake: thenReplaced,
    options: { apiKey: () => long(plantedKey, 1_000) },
  },
  { what: 'a ticket that is too long', ticket: longTicket },
  { what: 'a ticket that is too long, in a worker', ticket: longTicket, options: { receiveIn: 'worker' } },
  { what: 'a key that is too long', options: longKey },
  { what: 'a key that is too long, in a worker', options: { ...longKey, receiveIn: 'worker' } },
  { what: 'a refused handshake', handshake: [refuseHandshake(400, { 'x-echo': secret }, secret)] },
  {
    what: 'a status line',
    handshake: [(peer) => peer.socket.end(switching(peer).replace(/Accept: .*/, `Accept: ${secret}`))],
  },
  {
    what: 'a close reason with a key that a function returned',
    handshake: [accept(text('a'), close(4001, `${secret} ${plantedKey}`))],
    options: { apiKey: () => plantedKey },
  },
  { what: 'a broken connection', handshake: [({ socket }) => socket.destroy()] },
];

describe('rule 2: secrets', () => {
  it.each(hostile)('appear in no event and no error: $what', async (script) => {
    await using wire = await startWire(script);
    const options = optionsFor(wire, { ...script.options, backoff: { maxAttempts: 0, ...script.options?.backoff } });
    const emitted: unknown[] = [];
    const feed$ = tradeFeedEvents$('market', options);
    await new Promise<void>((resolve) => {
      feed$.subscribe({
        next: (event) => emitted.push(event),
        error: (error: unknown) => {
          emitted.push(error);
          resolve();
        },
      });
    });
    expect(emitted.length).toBeGreaterThan(1);
    const everything = everythingIn([feed$, ...emitted]);
    expect(everything).toContain('TradeFeedError');
    expect(everything).not.toContain(plantedKey);
    expect(everything).not.toContain(plantedTicket);
  });

  it.each(['main', 'worker'] as const)('appear in no line of a log: received in %s', async (receiveIn) => {
    await using wire = await startWire({
      ticket: [issue(), refuse(503, {}, plantedKey), issue()],
      handshake: [accept(text('a'), close(1001, secret)), accept(close(4001, `${plantedTicket}-3 ${plantedKey}`))],
    });
    const lines: unknown[] = [];
    const write = (...line: readonly unknown[]) => lines.push(line);
    await tradeFeedEvents$('market', { ...optionsFor(wire), receiveIn, backoff: { initialDelayMs: 1 } })
      .pipe(logEvents({ error: write, warn: write, info: write, debug: write }))
      .forEach(() => undefined)
      .catch(() => undefined);
    const everything = everythingIn(lines);
    for (const code of ['server-shutdown', 'credential-service-unavailable', 'connection-replaced'])
      expect(everything).toContain(code);
    expect(everything).not.toContain(plantedKey);
    expect(everything).not.toContain(plantedTicket);
  });

  it('are each sent in a single header, and never in an address', async () => {
    await using wire = await startWire({ handshake: [accept(close(1001)), accept(close(4001))] });
    await tradeFeedEvents$('market', optionsFor(wire))
      .forEach(() => undefined)
      .catch(() => undefined);
    const where = (secret: string) =>
      [...wire.tickets, ...wire.handshakes].flatMap(({ method, url, headers, body }) => [
        ...Object.entries(headers).flatMap(([name, value]) =>
          String(value).includes(secret) ? [`${method} ${name}`] : [],
        ),
        ...(`${url}${body}`.includes(secret) ? [`${method} url or body`] : []),
      ]);
    expect(where(plantedKey)).toEqual(['POST x-api-key', 'POST x-api-key']);
    expect(where(plantedTicket)).toEqual(['GET authorization', 'GET authorization']);
  });

  // Programs take long to start on a busy machine. Only a test that hangs reaches the limit.
  itInCi.each([[[]], [['own']]])(
    'are not printed by a program, even with NODE_DEBUG: %j',
    async (args) => {
      await using wire = await startWire({
        ticket: [issue(), issue(), issue(), refuse(503, {}, plantedKey), issue()],
        handshake: [
          accept(text('a'), close(1001)),
          refuseHandshake(503),
          accept(text('b'), close(4001, `${plantedTicket}-3`)),
        ],
      });
      const env = {
        TRADE_FEED_BASE_URL: wire.baseUrl,
        TRADE_FEED_API_KEY: plantedKey,
        NODE_DEBUG: 'http,https,net,tls,stream,undici,fetch,websocket,ws,rx-trade-feed',
      };
      const { stdout, stderr, code } = await runProgram('print-everything.mjs', args, env);
      expect(code).toBe(0);
      expect(stdout).toContain('connection-replaced');
      expect(stderr).toContain('HTTP');
      expect(stderr).toContain('RX-TRADE-FEED');
      expect(stdout + stderr).not.toContain(plantedKey);
      expect(stdout + stderr).not.toContain(plantedTicket);
    },
    120_000,
  );
});
