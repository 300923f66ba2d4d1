// A sender with a fixed rate. It closes with 1013 if the receiver is too slow (contract, section 7.3).
//
//   fork('paced-sender.mjs', [JSON.stringify({ framesPerSecond: 10_000, frameBytes: 1024 })])
//
// You can set `bytesPerSecond` instead of `framesPerSecond`. The sender answers ticket requests as well. It sends these IPC messages:
// `listening` (baseUrl), `closed` (code, sent), and `count` (connections) after `{ type: 'count' }`. `{ type: 'pause' }` stops the frames.
import { closeFrame } from './frames.mjs';
import { listen } from './listen.mjs';
import { nowUs, stampedFrames } from './stamp.mjs';

const { frameBytes = 1024, ...rate } = JSON.parse(process.argv[2]);
const framesPerSecond = rate.framesPerSecond ?? rate.bytesPerSecond / frameBytes;
/** A client that is so far behind is too slow. */
const BACKLOG_BYTES = 2 ** 20;
const TICK_MS = 1;

const makeFrame = stampedFrames(frameBytes);
const connections = new Set();
let isPaused = false;
// Ignores errors: the parent may have exited.
const report = (message) => process.connected && process.send(message, () => {});

/** Starts one connection: at each tick it writes all frames that are due. */
const pace = (socket) => {
  const from = nowUs();
  const connection = { sent: 0 };
  connection.end = (code) => {
    if (!connections.delete(connection)) return;
    clearInterval(timer);
    report({ type: 'closed', code, sent: connection.sent });
  };
  const closeAsTooSlow = () => {
    connection.end(1013);
    socket.end(closeFrame(1013, 'client too slow'));
    // A client that doesn't read doesn't answer the close frame.
    setTimeout(() => socket.destroy(), 30_000).unref();
  };
  const timer = setInterval(() => {
    if (isPaused) return;
    const sentUs = nowUs();
    const due = Math.floor(((sentUs - from) * framesPerSecond) / 1e6);
    if (due <= connection.sent) return;
    const frames = Array.from({ length: due - connection.sent }, (_, n) => makeFrame(connection.sent + n, sentUs));
    socket.write(Buffer.concat(frames));
    connection.sent = due;
    if (socket.writableLength > BACKLOG_BYTES) closeAsTooSlow();
  }, TICK_MS);
  connections.add(connection);
  socket.once('close', () => connection.end(1006));
  return connection;
};

const paced = new WeakMap();
const { port } = await listen({
  start: (socket) => paced.set(socket, pace(socket)),
  hangUp: (socket, answer) => {
    paced.get(socket)?.end(answer.length > 3 ? answer.readUInt16BE(2) : 1005);
    socket.end(answer);
  },
});
report({ type: 'listening', baseUrl: `http://127.0.0.1:${port}` });

const commands = {
  count: () => report({ type: 'count', connections: [...connections].map(({ sent }) => ({ sent })) }),
  pause: () => (isPaused = true),
};
process.on('message', ({ type }) => commands[type]());
