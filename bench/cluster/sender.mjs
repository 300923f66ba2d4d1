// The service of the benchmark, in a separate process: answers ticket requests, and writes frames to the last client.
//
// A plan has the `size` of a payload and `framesPerSecond`, or the `window`: how many frames may be on their way. `{ received }` is the number of
// frames that have arrived, and `undefined` as a plan stops the frames.
import { frame } from '../support/frames.mjs';
import { listen } from '../support/listen.mjs';
import { payload } from '../support/payloads.mjs';

/** A client that is so many bytes behind can't receive at this rate. */
const maxBacklogBytes = 64 * 2 ** 20;
/** How many frames one write has at full rate. */
const atOnce = 256;
const sleeping = new Int32Array(new SharedArrayBuffer(4));

let socket;
let current;

const framesOf = (size, count) => Buffer.concat(Array.from({ length: count }, () => frame(payload(size))));

/** Writes frames one by one, each at its time. */
const pace = (plan) => {
  const bytes = framesOf(plan.size, 1);
  const everyMs = 1_000 / plan.framesPerSecond;
  const from = performance.now();
  let sent = 0;
  const write = () => {
    if (plan !== current) return;
    for (const due = (performance.now() - from) / everyMs; sent < due; sent += 1) socket.write(bytes);
    if (socket.writableLength > maxBacklogBytes) throw new Error('The client cannot receive at this rate.');
    // Timers of Node have a resolution of 1 ms.
    Atomics.wait(sleeping, 0, 0, Math.max(0, from + sent * everyMs - performance.now()));
    setImmediate(write);
  };
  write();
};

/** Writes as many frames as arrive, so no process waits and none is flooded. */
const flood = (plan) => {
  const bytes = framesOf(plan.size, atOnce);
  let sent = 0;
  plan.received = (received) => {
    for (; sent + atOnce <= received + plan.window; sent += atOnce) socket.write(bytes);
  };
  plan.received(0);
};

const { port } = await listen({
  start: (client) => (socket = client),
  hangUp: (client, answer) => client.end(answer),
});
process.send({ type: 'listening', baseUrl: `http://127.0.0.1:${port}` });
process.on('message', ({ plan, received }) => {
  if (received !== undefined) return current?.received?.(received);
  current = plan;
  if (plan?.window) flood(plan);
  else if (plan) pace(plan);
});
