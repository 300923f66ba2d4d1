// A sender that keeps a rate, whatever the receiver does, and cuts it off with 1013 when too much waits (contract, section 7.3).
//
//   fork('paced-sender.mjs', [JSON.stringify({ framesPerSecond: 10_000, frameBytes: 1024, backlogBytes: 2 ** 20, tls: false })])
//
// `bytesPerSecond` may stand for `framesPerSecond`. It answers ticket requests, too. By IPC it tells `listening` (port, baseUrl,
// caFile), `opened`, `closed` (code, sent, sentBytes, byServer) and, asked with `{ type: 'count' }`, `count`. `{ type: 'pause' }`
// and `{ type: 'resume' }` stop the frames and let them go on; `{ type: 'close', code, reason }` closes every connection.
import { createServer as createPlain } from 'node:net';
import { createServer as createSecure } from 'node:tls';
import { certificate } from './certificate.mjs';
import { closeFrame } from './frames.mjs';
import { session } from './session.mjs';
import { nowUs, stampedFrames } from './stamp.mjs';

const {
  frameBytes = 1024,
  backlogBytes = 2 ** 20,
  kind = 'text',
  tls = false,
  tickMs = 1,
  ...asked
} = JSON.parse(process.argv[2] ?? '{}');
const framesPerSecond = asked.framesPerSecond ?? (asked.bytesPerSecond ?? 1e6) / frameBytes;

const secret = tls ? await certificate() : undefined;
const makeFrame = stampedFrames(frameBytes, kind);
const connections = new Set();
// Whoever asked may have gone: then nobody minds.
const tell = (message) => process.connected && process.send({ atUs: nowUs(), ...message }, () => {});
let opened = 0;

/** One connection: what is due by the clock is written, all of it, at each tick. */
const pace = (socket) => {
  const connection = { id: (opened += 1), sent: 0, isPaused: false, dueFrom: nowUs(), dueBase: 0, close: () => {} };
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
    tell({ type: 'closed', code, byServer, ...facts() });
  };
  connection.close = (code, reason) => {
    end(code, true);
    socket.end(closeFrame(code, reason));
    // Who does not read will not answer.
    setTimeout(() => socket.destroy(), 30_000).unref();
  };
  connection.facts = facts;
  connection.end = end;
  const timer = setInterval(() => {
    if (connection.isPaused) return;
    const due = connection.dueBase + Math.floor(((nowUs() - connection.dueFrom) * framesPerSecond) / 1e6);
    if (due <= connection.sent) return;
    const sentUs = nowUs();
    const frames = Array.from({ length: due - connection.sent }, (_, n) => makeFrame(connection.sent + n, sentUs));
    socket.write(Buffer.concat(frames));
    connection.sent = due;
    if (socket.writableLength > backlogBytes) connection.close(1013, 'client too slow');
  }, tickMs);
  connection.pause = () => (connection.isPaused = true);
  connection.resume = () => Object.assign(connection, { isPaused: false, dueFrom: nowUs(), dueBase: connection.sent });
  connections.add(connection);
  tell({ type: 'opened', connection: connection.id });
  socket.once('close', () => end(1006, false));
  return connection;
};

const serve = (socket) => {
  socket.setNoDelay(true);
  const origin = `${tls ? 'wss' : 'ws'}://127.0.0.1:${server.address().port}`;
  let connection;
  const read = session({
    origin,
    write: (bytes) => socket.write(bytes),
    start: () => (connection = pace(socket)),
    hangUp: (answer) => {
      connection?.end(answer.length > 3 ? answer.readUInt16BE(2) : 1005, false);
      socket.end(answer);
    },
  });
  socket.on('data', read).on('error', () => socket.destroy());
};

const server = tls ? createSecure(secret, serve) : createPlain(serve);
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const baseUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${frameBytes}/${kind}/plain`;
  tell({ type: 'listening', port, baseUrl, caFile: secret?.caFile });
});

const commands = {
  count: () => tell({ type: 'count', connections: [...connections].map(({ facts }) => facts()) }),
  pause: () => connections.forEach((each) => each.pause()),
  resume: () => connections.forEach((each) => each.resume()),
  close: ({ code = 1001, reason = 'server shutdown' }) => connections.forEach((each) => each.close(code, reason)),
};
process.on('message', (message) => commands[message.type]?.(message));
process.once('disconnect', () => process.exit());
