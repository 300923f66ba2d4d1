import { describe, expect, it } from '@jest/globals';
import { tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { everythingIn } from '../support/everything-in.js';
import { optionsFor, plantedKey } from '../support/feed.js';
import { runProgram } from '../support/run-program.js';
import {
  accept,
  close,
  issue,
  refuse,
  refuseHandshake,
  startWire,
  switching,
  text,
  type WireScript,
  wsFrame,
} from '../support/wire.js';

const plantedTicket = 'planted-ticket';

/** Services that return the secrets in every text that they can send. */
const hostile: readonly (WireScript & { readonly what: string; readonly options?: TradeFeedOptions })[] = [
  {
    what: 'error bodies and headers',
    ticket: [refuse(401, { 'x-echo': plantedKey, location: `/${plantedKey}` }, plantedKey)],
  },
  { what: 'a redirect', ticket: [refuse(302, { location: `/${plantedKey}` })] },
  { what: 'a body that is not JSON', ticket: [refuse(200, {}, `${plantedTicket}-1 ${plantedKey}`)] },
  {
    what: 'bad fields',
    ticket: [issue({ expires_at: plantedKey, wss_url: `ws://${plantedKey}/`, subprotocol: `${plantedKey} x` })],
  },
  {
    what: 'unknown fields',
    ticket: [issue({ api_key: plantedKey })],
    handshake: [accept(text('a'), close(4001))],
  },
  {
    what: 'a ticket response that is not HTTP',
    ticket: [(response) => response.socket?.end(`HTTP/1.1 200 OK\r\n${plantedKey}\r\n${plantedTicket}-1\r\n\r\n`)],
  },
  { what: 'an unknown host', ticket: [issue({ wss_url: `wss://${plantedTicket}-1.invalid/` })] },
  { what: 'a subprotocol', ticket: [issue({ subprotocol: `${plantedTicket}-1` })] },
  {
    what: 'a refused handshake',
    handshake: [refuseHandshake(400, { 'x-echo': `${plantedTicket}-1` }, `${plantedTicket}-1`)],
  },
  {
    what: 'a handshake response that is not HTTP',
    handshake: [({ socket }) => socket.end(`HTTP/1.1 101 ${plantedTicket}-1\r\n${plantedTicket}-1\r\n\r\n`)],
  },
  {
    what: 'a status line',
    handshake: [(peer) => peer.socket.end(switching(peer).replace(/Accept: .*/, `Accept: ${plantedTicket}-1`))],
  },
  { what: 'a close reason', handshake: [accept(text('a'), close(4001, `${plantedTicket}-1 ${plantedKey}`))] },
  {
    what: 'a close reason with a key that a function returned',
    handshake: [accept(text('a'), close(4001, plantedKey))],
    options: { apiKey: () => plantedKey },
  },
  {
    what: 'a bad frame',
    handshake: [accept(wsFrame(3, `${plantedTicket}-1`))],
    options: { backoff: { maxAttempts: 0 } },
  },
  {
    what: 'a broken connection',
    handshake: [({ socket }) => socket.destroy()],
    options: { backoff: { maxAttempts: 1 } },
  },
];

describe('rule 2: secrets', () => {
  it.each(hostile)('appear in no event and no error: $what', async (script) => {
    await using wire = await startWire(script);
    const options = optionsFor(wire, { ...script.options, backoff: { maxAttempts: 0, ...script.options?.backoff } });
    const seen: unknown[] = [];
    const feed$ = tradeFeedEvents$('market', options);
    await new Promise<void>((resolve) => {
      feed$.subscribe({
        next: (event) => seen.push(event),
        error: (error: unknown) => {
          seen.push(error);
          resolve();
        },
      });
    });
    expect(seen.length).toBeGreaterThan(1);
    const everything = everythingIn([feed$, ...seen]);
    expect(everything).toContain('TradeFeedError');
    expect(everything).not.toContain(plantedKey);
    expect(everything).not.toContain(plantedTicket);
  });

  it('are sent in one header each, and in no address', async () => {
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
