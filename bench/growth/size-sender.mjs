// A sender of frames of any size up to 16 MB. Answers the upgrade without a library, then writes as fast as the socket drains.
import { createServer } from 'node:net';
import { frame } from '../support/frames.mjs';
import { session, parsePath } from '../support/session.mjs';

/** Returns about a megabyte of frames, or one larger frame. */
const batchAt = (path) => {
  const { size, kind } = parsePath(path);
  const one = frame(Buffer.alloc(size, '{"price":1.0842,"size":100}'), kind);
  return Buffer.concat(new Array(Math.max(1, Math.round(2 ** 20 / size))).fill(one));
};

const server = createServer((socket) => {
  const start = (path) => {
    const bytes = batchAt(path);
    const write = () => {
      while (!socket.destroyed && socket.write(bytes));
    };
    socket.on('drain', write);
    write();
  };
  const read = session({
    origin: `ws://127.0.0.1:${server.address().port}`,
    write: (bytes) => socket.write(bytes),
    start,
    hangUp: () => socket.destroy(),
  });
  socket.on('data', read).on('error', () => socket.destroy());
});
server.listen(0, '127.0.0.1', () => process.send({ type: 'listening', port: server.address().port }));
process.once('disconnect', () => process.exit());
