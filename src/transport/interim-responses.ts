import type { Duplex } from 'node:stream';

const maxInterimBytes = 64 * 1024;

/**
 * Removes informational responses (1xx) except `101` from what a socket receives. Returns the socket.
 *
 * A client must skip them even if it didn't ask for them (RFC 9110, 15.2), but undici ends the request at a `100`. A
 * write begins a request, so the next bytes are the head of a response. More than 64 KiB of them destroy the socket.
 */
export const withoutInterimResponses = <S extends Duplex>(socket: S): S => {
  const push = socket.push.bind(socket);
  const write = socket.write.bind(socket) as (...parts: unknown[]) => boolean;
  const nothing: Buffer = Buffer.alloc(0);
  let isResponse = false;
  let held = nothing;
  let skippedBytes = 0;

  Object.assign(socket, {
    push: (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (isResponse) return push(chunk, encoding);
      if (!(chunk instanceof Buffer)) {
        if (held.length > 0) push(held);
        return push(chunk, encoding);
      }
      const { rest, isDecided } = skipInterim(Buffer.concat([held, chunk]));
      isResponse = isDecided;
      held = isDecided ? nothing : rest;
      if (isDecided) return push(rest);
      skippedBytes += chunk.length;
      if (skippedBytes > maxInterimBytes)
        socket.destroy(new Error(`more than ${maxInterimBytes} bytes of informational responses`));
      return true;
    },
    write: (...parts: unknown[]): boolean => {
      if (isResponse) [isResponse, skippedBytes] = [false, 0];
      return write(...parts);
    },
  });
  return socket;
};

/** Skips complete informational heads. `isDecided`: the rest begins a response; if not, more bytes are needed. */
const skipInterim = (bytes: Buffer): { readonly rest: Buffer; readonly isDecided: boolean } => {
  for (let rest = bytes; ;) {
    const start = rest.toString('latin1', 0, 'HTTP/1.1 100'.length);
    if (!mayBeInterim(start)) return { rest, isDecided: true };
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) return { rest, isDecided: false };
    rest = rest.subarray(end + 4);
  }
};

const mayBeInterim = (start: string): boolean =>
  ['HTTP/1.1 1', 'HTTP/1.0 1'].some((version) => version.startsWith(start) || start.startsWith(version)) &&
  /^(.{0,11}|.{10}(?!01)\d\d)$/s.test(start);
