import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startTradeFeedService, type TradeFeedService } from 'rx-trade-feed/testing';
import { handshakeLines } from '../testing/bare-client.js';
import { report, secondsSince, within } from './fuzz.js';
import { connectTo, goodClient } from './raw-client.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const heapAfterGc = async (): Promise<number> => {
  // Closed sockets are released some turns later.
  for (let turn = 0; turn < 5; turn += 1) await nextTurn();
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
};

describe('the local service under handshakes with bad tickets', () => {
  const handshakes = 10_000;
  const parallel = 50;

  // Minimal on purpose: values that the test stores would look like a leak.
  const statusOf = (service: TradeFeedService, n: number): Promise<string> =>
    new Promise((resolve) => {
      let status = 'none';
      const socket = connectTo(service)
        .once('data', (bytes: Buffer) => (status = bytes.toString('latin1', 9, 12)))
        .once('close', () => resolve(status));
      socket.write([...handshakeLines(`ticket_${n}`), '', ''].join('\r\n'));
    });

  // Each ticket is new: a service that stored each one would grow.
  let made = 0;
  const refuseMany = async (service: TradeFeedService, count: number, seen: Map<string, number>): Promise<void> => {
    const end = made + count;
    const one = async () => {
      while (made < end) {
        const status = await statusOf(service, (made += 1));
        seen.set(status, (seen.get(status) ?? 0) + 1);
      }
    };
    await within(120_000, 'refusing', Promise.all(Array.from({ length: parallel }, one)));
  };

  it(`refuses ${handshakes} handshakes with 401, stores none of them, and serves a valid client meanwhile`, async () => {
    await using service = await startTradeFeedService();
    await using good = await goodClient(service);
    const seen = new Map<string, number>();
    await refuseMany(service, handshakes / 5, seen);
    const before = await heapAfterGc();
    const startedMs = performance.now();
    for (let round = 0; round < 4; round += 1)
      await Promise.all([refuseMany(service, handshakes / 5, seen), good.getsFrame()]);
    const seconds = secondsSince(startedMs);
    const heapGrowthBytes = (await heapAfterGc()) - before;
    await good.isServed();
    expect([...seen]).toEqual([['401', handshakes]]);
    // A stored handshake would need more memory than this.
    expect(heapGrowthBytes).toBeLessThan(handshakes * 0.8 * 100);
    report({ property: 'handshakes with bad tickets', cases: handshakes, failures: 0, seconds, heapGrowthBytes });
  }, 180_000);
});
