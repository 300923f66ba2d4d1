// The service of the benchmark, in a separate process: answers ticket requests, and writes bursts of frames at a fixed rate to the last client.
//
//   fork('sender.mjs'), then { framesPerSecond: 200_000, burst: 64 }; { framesPerSecond: 0 } stops the frames
import { createServer } from 'node:net';
import { frame } from '../support/frames.mjs';
import { payload } from '../support/payloads.mjs';
import { session } from '../support/session.mjs';

const size = 200;
/** A client that is so many bytes behind cannot receive at this rate. */
const maxBacklogBytes = 64 * 2 ** 20;
const oneFrame = frame(payload(size));
const sleeping = new Int32Array(new SharedArrayBuffer(4));

let socket;
let current;

const start = ({ framesPerSecond, burst }) => {
  const bytes = Buffer.concat(Array.from({ length: burst }, () => oneFrame));
  current = { bytes, everyMs: (burst * 1_000) / framesPerSecond, from: performance.now(), sent: 0 };
  const write = (plan) => {
    if (plan !== current) return;
    const due = (performance.now() - plan.from) / plan.everyMs;
    for (; plan.sent < due; plan.sent += 1) socket.write(plan.bytes);
    if (socket.writableLength > maxBacklogBytes) throw new Error('The client cannot receive at this rate.');
    // Timers of Node have a resolution of 1 ms.
    Atomics.wait(sleeping, 0, 0, Math.max(0, plan.from + plan.sent * plan.everyMs - performance.now()));
    setImmediate(write, plan);
  };
  write(current);
};

const server = createServer({ noDelay: true }, (client) => {
  const read = session({
    origin: `ws://127.0.0.1:${server.address().port}`,
    write: (bytes) => client.write(bytes),
    start: () => (socket = client),
    hangUp: (answer) => client.end(answer),
  });
  client.on('data', read).on('error', () => client.destroy());
});
server.listen(0, '127.0.0.1', () =>
  process.send({ type: 'listening', baseUrl: `http://127.0.0.1:${server.address().port}/${size}/text/plain` }),
);
process.on('message', (plan) => {
  current = undefined;
  if (plan.framesPerSecond > 0) start(plan);
});
process.once('disconnect', () => process.exit());
