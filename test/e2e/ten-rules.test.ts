/** @lane processes */
import { describe, expect, it, jest } from '@jest/globals';
import { firstValueFrom, identity, take, toArray } from 'rxjs';
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
  text,
  type Wire,
  type WireScript,
} from '../support/wire.js';

const allClosed = (wire: Wire): Promise<unknown> => Promise.all([...wire.open].map(closed));

describe('rule 1: nothing of an attempt outlives it', () => {
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

  it.each<FeedEvent['type']>(['opened', 'frame'])(
    'classifies nothing that arrives after unsubscribing, on %s',
    async (type) => {
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
    },
  );
});

// In every other phase: test/model.
describe('rule 4: unsubscribing releases everything', () => {
  it('in the key function', async () => {
    await using wire = await startWire();
    let resolveKey: (key: string) => void = () => undefined;
    const apiKey = () => new Promise<string>((resolve) => (resolveKey = resolve));
    const feed$ = tradeFeedEvents$('market', optionsFor(wire, { apiKey }));
    await until(feed$, ({ type }) => type === 'ticket-requested');
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

const plantedTicket = 'planted-ticket';

const secret = `${plantedTicket}-1`;
const longKey = { apiKey: () => plantedKey.repeat(3_000) };
const longTicket = [issue({ ticket: plantedTicket.repeat(3_000) })];

const expectNoSecret = (everything: string): void => {
  expect(everything).not.toContain(plantedKey);
  expect(everything).not.toContain(plantedTicket);
};

describe('rule 2: secrets', () => {
  // Services that return the secrets, beyond what the fuzz tests do.
  it.each<[string, WireScript, TradeFeedOptions?]>([
    ['unknown fields', { ticket: [issue({ api_key: plantedKey })], handshake: [accept(close(4001, 'replaced'))] }],
    ['an unknown host', { ticket: [issue({ wss_url: `wss://${secret}.invalid/` })] }],
    [
      'a connection with a long ticket and a long key',
      {
        ticket: [issue({ ticket: plantedTicket.repeat(1_000) })],
        handshake: [accept(text('a'), close(4001, 'connection replaced'))],
      },
      { apiKey: () => plantedKey.repeat(1_000) },
    ],
    ['a ticket that is too long', { ticket: longTicket }],
    ['a ticket that is too long, in a worker', { ticket: longTicket }, { receiveIn: 'worker' }],
    ['a key that is too long', {}, longKey],
    ['a key that is too long, in a worker', {}, { ...longKey, receiveIn: 'worker' }],
  ])('appear in no event and no error: %s', async (_, script, options = {}) => {
    await using wire = await startWire(script);
    const feed$ = tradeFeedEvents$('market', optionsFor(wire, { ...options, backoff: { maxAttempts: 0 } }));
    const emitted: unknown[] = [];
    emitted.push(await feed$.forEach((event) => void emitted.push(event)).catch(identity));
    expect(emitted.length).toBeGreaterThan(1);
    const everything = everythingIn([feed$, ...emitted]);
    expect(everything).toContain('TradeFeedError');
    expectNoSecret(everything);
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
    expectNoSecret(everything);
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
      expectNoSecret(stdout + stderr);
    },
    120_000,
  );
});
