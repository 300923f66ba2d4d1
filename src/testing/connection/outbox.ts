import type { Duplex } from 'node:stream';

/** Writes frames to one socket, many at a time. */
export interface Outbox {
  /** Writes a frame; gives false, and writes nothing, when the client is too slow. */
  write(frame: Buffer): boolean;
  /** Hands what was written in this turn to the socket, instead of at the end of the turn. */
  flush(): void;
}

/** Bytes after which a turn's frames are handed to the socket before the turn is over. */
const burstBytes = 64 * 1024;

/**
 * Makes the outbox of a connection: frames of one turn go out in one system call, and a client that does not take them is found.
 *
 * What counts is what the client has not taken: bytes that the socket holds because the operating system accepts no more. A
 * frame that is due while more than `backlogBytes` wait is too much (contract, section 7.3, 1013); a single frame may be larger.
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
