/** @lane clock */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { startFaultProxy } from './fault-proxy.js';
import type { Cut, Flow } from './faults.js';
import { listen } from './listen.js';

const sent = Buffer.alloc(100_000, Buffer.from([...Array(251).keys()]));

/** Sends `sent` through a proxy to a client that has asked for it. Returns what it received, and how the connection ended for the service. */
const through = async (toClient: Flow) => {
  const server = createServer((socket) => socket.on('data', () => socket.end(sent)));
  await using service = await listen(server);
  await using proxy = await startFaultProxy({ target: service.port, faults: () => ({ toClient }) });
  const client = connect({ port: proxy.port, host: '127.0.0.1' }).setNoDelay();
  const serviceEnd = once(server, 'connection').then(([socket]) => endOf(socket as Socket));
  const chunks: Buffer[] = [];
  const startedMs = performance.now();
  client.on('data', (chunk) => chunks.push(chunk)).write('question');
  // Node reports a reset that arrives together with the last bytes as an end.
  await endOf(client);
  return { chunks, received: Buffer.concat(chunks), end: await serviceEnd, ms: performance.now() - startedMs };
};
const endOf = (socket: Socket) =>
  new Promise((resolve) => {
    socket.once('end', () => resolve('FIN')).once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });

it.each<[string, Flow, isSo: (chunks: number, ms: number) => boolean]>([
  ['unchanged', {}, () => true],
  ['limited to a number of bytes per second', { bytesPerSecond: 500_000 }, (_, ms) => ms > 150],
  ['delayed', { delayMs: 150, jitterMs: 50 }, (_, ms) => ms > 145],
  ['split into small pieces', { segments: 'split' }, (chunks) => chunks >= 20],
])('what a fault proxy forwards is %s but complete', async (_, flow, isSo) => {
  const { chunks, received, ms } = await through(flow);
  expect(received.equals(sent)).toBe(true);
  expect(isSo(chunks.length, ms)).toBe(true);
});

it.each<[Cut, unknown]>([
  [{ afterBytes: 0, how: 'reset' }, 'ECONNRESET'],
  [{ afterBytes: 70_000, how: 'reset' }, 'ECONNRESET'],
  [{ afterBytes: 70_000, how: 'end' }, 'FIN'],
])('the cut %j of a fault proxy forwards exactly that many bytes', async (cut, expected) => {
  const { received, end } = await through({ cut });
  expect(received.equals(sent.subarray(0, cut.afterBytes))).toBe(true);
  expect(end).toBe(expected);
});
