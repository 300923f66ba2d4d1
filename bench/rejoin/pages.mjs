// Pages that leave and come back together: `node pages.mjs <port> <count> <away ms>`. They count what they receive, and parse only ids.
//
// It sends these IPC messages: `away` when all have left, `joined` (ms) when each has received something again, `caughtUp` (ms) when each has
// received `replayBytes`.
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const [port, count, awayMs] = process.argv.slice(2).map(Number);
/** What a relay sends a returning page at most. */
const replayBytes = 8 * 1024 * 1024;
// One buffer for all: pages mustn't cost more than the server.
const buffer = Buffer.alloc(64 * 1024);

/** Opens pages. `onBytes` is called with the bytes that a page has received so far, and with the text of its first part. */
const open = (lastEventId, onBytes) =>
  Array.from({ length: count }, () => {
    let bytes = 0;
    const callback = (length) => {
      bytes += length;
      onBytes(bytes, length, bytes === length ? buffer.toString('latin1', 0, length) : '');
      return true;
    };
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback } }).on('error', (error) => {
      throw error;
    });
    const resume = lastEventId === undefined ? '' : `Last-Event-ID: ${lastEventId}\r\n`;
    socket.write(`GET /feed HTTP/1.1\r\nHost: localhost\r\n${resume}\r\n`);
    return socket;
  });

let id;
let seen = 0;
const first = open(undefined, (bytes, length, text) => {
  if (bytes === length) seen += 1;
  id = /^id: (.*)$/m.exec(text)?.[1] ?? id;
});
while (seen < count) await delay(10);
for (const socket of first) socket.destroy();
await delay(100);
process.send({ type: 'away' });
await delay(awayMs);

const begun = performance.now();
let [joined, caughtUp] = [0, 0];
open(id, (bytes, length) => {
  const ms = performance.now() - begun;
  if (bytes === length && (joined += 1) === count) process.send({ type: 'joined', ms });
  if (bytes >= replayBytes && bytes - length < replayBytes && (caughtUp += 1) === count)
    process.send({ type: 'caughtUp', ms });
});
process.once('disconnect', () => process.exit());
