// A sender of frames of any size up to 16 MB, as fast as the socket drains.
import { frame } from '../support/frames.mjs';
import { flooding, listen } from '../support/listen.mjs';
import { parsePath } from '../support/session.mjs';

/** Returns about a megabyte of frames, or one larger frame. */
const batchAt = (path) => {
  const { size, kind } = parsePath(path);
  const one = frame(Buffer.alloc(size, '{"price":1.0842,"size":100}'), kind);
  return Buffer.concat(new Array(Math.max(1, Math.round(2 ** 20 / size))).fill(one));
};

const { port } = await listen({ start: (socket, path) => flooding(socket, batchAt(path))() });
process.send({ type: 'listening', port });
