import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { plantedKey } from '../support/feed.js';
import { runProgram } from '../support/run-program.js';
import { accept, startWire, text } from '../support/wire.js';

/** Returns a loopback address where nothing listens. */
const deadAddress = async (): Promise<string> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
};

const run = (baseUrl: string, more: Readonly<Record<string, string>> = {}) =>
  runProgram('wrong-address.mjs', [], { TRADE_FEED_BASE_URL: baseUrl, TRADE_FEED_API_KEY: plantedKey, ...more });

describe('a program with a wrong address', () => {
  it('prints one warning with the address, the code, the advice and the debug switch', async () => {
    const baseUrl = await deadAddress();
    const { code, stdout, stderr } = await run(baseUrl);
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    expect(stderr).toMatch(/^\(node:\d+\) \[ticket-endpoint-unreachable\] TradeFeedWarning: No connection to /);
    expect(stderr.match(/TradeFeedWarning/g)).toHaveLength(1);
    for (const part of [baseUrl, 'wrong-address.mjs:', 'ECONNREFUSED', 'NODE_DEBUG=rx-trade-feed', 'warnings: false'])
      expect(stderr).toContain(part);
    expect(stderr).not.toContain(plantedKey);
  });

  it('prints each event on one line with NODE_DEBUG=rx-trade-feed', async () => {
    const baseUrl = await deadAddress();
    const { stderr } = await run(baseUrl, { NODE_DEBUG: 'rx-trade-feed' });
    const lines = stderr.split('\n').filter((line) => line.startsWith('RX-TRADE-FEED'));
    const prefix = /^RX-TRADE-FEED \d+: tradeFeed\$\('market'\) at \S+wrong-address\.mjs:\d+:\d+, (\S+): /;
    const texts = lines.map((line) => line.replace(prefix, '$1 '));
    for (const n of [0, 3, 6]) {
      expect(texts[n]).toBe(`${baseUrl} Requesting a ticket for market`);
      expect(texts[n + 1]).toMatch(/ Disconnected, ticket-endpoint-unreachable: .*ECONNREFUSED/);
    }
    expect(texts[2]).toMatch(/ Reconnect 1 in \d+ ms$/);
    expect(stderr).not.toContain(plantedKey);
  });

  it('prints the ticket and the opening of a connection with NODE_DEBUG, but no secret and no frame', async () => {
    const frames = ['a', 'b', 'c'].map((payload) => text(`planted-${payload}`));
    await using wire = await startWire({ handshake: [accept(...frames)] });
    const { stdout, stderr } = await runProgram('take-three.mjs', [], {
      ...{ TRADE_FEED_BASE_URL: wire.baseUrl, TRADE_FEED_API_KEY: plantedKey, NODE_DEBUG: 'rx-trade-feed' },
    });
    expect(stdout).toBe('planted-a\nplanted-b\nplanted-c\n');
    expect(stderr).toContain('Ticket issued for market');
    expect(stderr).toContain('Connected to market (connection 1)');
    expect(stderr).not.toContain('planted-');
  });
});
