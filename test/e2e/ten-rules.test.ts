import { describe, expect, it, jest } from '@jest/globals';
import { filter, firstValueFrom, take, toArray } from 'rxjs';
import { logEvents, tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
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

/** Waits for a condition at least this long and at least 100 turns, because a busy machine can pause the process. */
const turnsUntil = async (condition: () => boolean, limitMs: number): Promise<void> => {
  const end = performance.now() + limitMs;
  for (let turn = 0; !condition() && (turn < 100 || performance.now() < end); turn += 1) await turns(1);
};

const allClosed = (wire: Wire): Promise<unknown> => Promise.all([...wire.open].map(closed));

describe('rule 1: nothing of an attempt outlives it', () => {
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
          void turnsUntil(() => !isOpen(), 500).then(() => {
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

describe('rule 4: unsubscribing releases everything', () => {
  it('in the key function', async () => {
    await using wire = await startWire();
    let resolveKey: (key: string) => void = () => undefined;
    const apiKey = () => new Promise<string>((resolve) => (resolveKey = resolve));
    await until(tradeFeedEvents$('market', optionsFor(wire, { apiKey })), ({ type }) => type === 'ticket-requested');
    resolveKey('late-key');
    await turns(20);
    expect(wire.connections).toBe(0);
  });

  it('while the connection to the ticket endpoint is being established', async () => {
    await using silent = await startGate(['silence']);
    const subscription = tradeFeed$('market', {
      baseUrl: `https://127.0.0.1:${silent.port}`,
      apiKey: 'k',
    }).subscribe();
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

// Programs take long to start on a busy machine. Only a test that hangs reaches this.
jest.setTimeout(120_000);

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
  { what: 'a body that is not JSON', ticket: [refuse(200, {}, `${secret} ${plantedKey}`)] },
  { what: 'unknown fields', ticket: [issue({ api_key: plantedKey })], handshake: thenReplaced },
  { what: 'an unknown host', ticket: [issue({ wss_url: `wss://${secret}.invalid/` })] },
  { what: 'a ticket that is too long, in a worker', ticket: longTicket, options: { receiveIn: 'worker' } },
  { what: 'a key that is too long', options: longKey },
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

  it('appear in no line of a log', async () => {
    await using wire = await startWire({
      ticket: [issue(), refuse(503, {}, plantedKey), issue()],
      handshake: [accept(text('a'), close(1001, secret)), accept(close(4001, `${plantedTicket}-3 ${plantedKey}`))],
    });
    const lines: unknown[] = [];
    const write = (...line: readonly unknown[]) => lines.push(line);
    await tradeFeedEvents$('market', { ...optionsFor(wire), backoff: { initialDelayMs: 1 } })
      .pipe(logEvents({ error: write, warn: write, info: write, debug: write }))
      .forEach(() => undefined)
      .catch(() => undefined);
    const everything = everythingIn(lines);
    for (const code of ['server-shutdown', 'credential-service-unavailable', 'connection-replaced'])
      expect(everything).toContain(code);
    expect(everything).not.toContain(plantedKey);
    expect(everything).not.toContain(plantedTicket);
  });

  it.each([[[]], [['own']]])('are not printed by a program, even with NODE_DEBUG: %j', async (args) => {
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
  });
});
