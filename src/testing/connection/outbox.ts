import type { Duplex } from 'node:stream';

/** Writes frames to one socket, many in one system call. */
export interface Outbox {
  /** Writes a frame. If the client is too slow, returns `false` and writes nothing. */
  write(frame: Buffer): boolean;
  /** Passes this turn's frames to the socket now, instead of at the end of the turn. */
  flush(): void;
}

/** After this many bytes, the frames of a turn are passed to the socket before the end of the turn. */
const burstBytes = 64 * 1024;

/**
 * Creates the outbox of a connection. It sends the frames of one turn in one system call, and detects a client that is too slow.
 *
 * The backlog is the bytes in the socket that the operating system does not accept, because the client does not read. If more than `backlogBytes`
 * wait when a burst begins, the client is too slow (contract, section 7.3, 1013). The frames of the burst do not count, so a single frame may be
 * larger.
 */
export const createOutbox = (socket: Duplex, backlogBytes: number): Outbox => {
  let corkedBytes = 0;
  let isCorked = false;
  let isFlushDue = false;

  const flush = (): void => {
    if (!isCorked) return;
    isCorked = false;
    socket.uncork();
  };

  const flushAtEndOfTurn = (): void => {
    isFlushDue = false;
    flush();
  };

  return {
    write: (frame) => {
      if (!isCorked) {
        if (socket.writableLength > backlogBytes) return false;
        socket.cork();
        isCorked = true;
        corkedBytes = 0;
        if (!isFlushDue) process.nextTick(flushAtEndOfTurn);
        isFlushDue = true;
      }
      socket.write(frame);
      corkedBytes += frame.length;
      if (corkedBytes >= burstBytes) flush();
      return true;
    },
    flush,
  };
};
