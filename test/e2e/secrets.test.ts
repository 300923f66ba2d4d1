import { describe, expect, it } from '@jest/globals';
import { logEvents, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { everythingIn } from '../support/everything-in.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { runProgram } from '../support/run-program.js';
import { accept, close, issue, refuse, refuseHandshake, startWire } from '../support/wire.js';
import { switching, text, type WireScript } from '../support/wire.js';

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
