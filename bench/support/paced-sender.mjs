// A sender with a fixed rate. It closes with 1013 if the receiver is too slow (contract, section 7.3).
//
//   fork('paced-sender.mjs', [JSON.stringify({ framesPerSecond: 10_000, frameBytes: 1024, backlogBytes: 2 ** 20, tls: false })])
//
// You can set `bytesPerSecond` instead of `framesPerSecond`. The sender answers ticket requests as well. It sends these IPC messages:
// `listening` (port, baseUrl, caFile), `opened`, `closed` (code, sent, sentBytes, byServer), and `count` after `{ type: 'count' }`.
// `{ type: 'pause' }` stops the frames.
import { closeFrame } from './frames.mjs';
import { listen } from './listen.mjs';
import { nowUs, stampedFrames } from './stamp.mjs';

const {
  frameBytes = 1024,
  backlogBytes = 2 ** 20,
  kind = 'text',
  tls = false,
  tickMs = 1,
  ...rate
} = JSON.parse(process.argv[2] ?? '{}');
const framesPerSecond = rate.framesPerSecond ?? (rate.bytesPerSecond ?? 1e6) / frameBytes;

const makeFrame = stampedFrames(frameBytes, kind);
const connections = new Set();
// Ignores errors: the parent may have exited.
const report = (message) => process.connected && process.send({ atUs: nowUs(), ...message }, () => {});
let opened = 0;

/** Starts one connection: at each tick it writes all frames that are due. */
const pace = (socket) => {
  const connection = { id: (opened += 1), sent: 0, isPaused: false, dueFrom: nowUs() };
  const facts = () => ({
    connection: connection.id,
    sent: connection.sent,
    sentBytes: connection.sent * frameBytes,
    backlogBytes: socket.writableLength,
  });
  let isOver = false;
  const end = (code, byServer) => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    connections.delete(connection);
    report({ type: 'closed', code, byServer, ...facts() });
  };
  const close = (code, reason) => {
    end(code, true);
    socket.end(closeFrame(code, reason));
    // A client that doesn't read doesn't answer the close frame.
    setTimeout(() => socket.destroy(), 30_000).unref();
  };
  const timer = setInterval(() => {
    if (connection.isPaused) return;
    const due = Math.floor(((nowUs() - connection.dueFrom) * framesPerSecond) / 1e6);
    if (due <= connection.sent) return;
    const sentUs = nowUs();
    const frames = Array.from({ length: due - connection.sent }, (_, n) => makeFrame(connection.sent + n, sentUs));
    socket.write(Buffer.concat(frames));
    connection.sent = due;
    if (socket.writableLength > backlogBytes) close(1013, 'client too slow');
  }, tickMs);
  Object.assign(connection, { facts, end });
  connections.add(connection);
  report({ type: 'opened', connection: connection.id });
  socket.once('close', () => end(1006, false));
  return connection;
};

const paced = new WeakMap();
const { port, caFile } = await listen({
  tls,
  start: (socket) => paced.set(socket, pace(socket)),
  hangUp: (socket, answer) => {
    paced.get(socket)?.end(answer.length > 3 ? answer.readUInt16BE(2) : 1005, false);
    socket.end(answer);
  },
});
const baseUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${frameBytes}/${kind}/plain`;
report({ type: 'listening', port, baseUrl, caFile });

const commands = {
  count: () => report({ type: 'count', connections: [...connections].map(({ facts }) => facts()) }),
  pause: () => connections.forEach((each) => (each.isPaused = true)),
};
process.on('message', (message) => commands[message.type]?.(message));
