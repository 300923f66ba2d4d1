import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { numberedPayload } from './numbered-payload.js';
import type { Seen } from './ten-rules/seen.js';
import { resetSocket } from './reset-socket.js';
import { clientFrames, close, pong, switching, wsFrame } from './wire.js';

/** A handshake that waits for an answer from the test. */
export interface HeldHandshake {
  readonly subscription: number;
  /** Answers 101, with frames in the same write. @param subprotocol - default: the requested one */
  readonly accept: (frames?: number, subprotocol?: string) => void;
  readonly refuse: (status: number, headers?: Readonly<Record<string, string>>) => void;
  readonly answerRaw: (bytes: string) => void;
  readonly reset: () => void;
  /** Resolves with the stream when it is open, or with `undefined` when it failed. */
  readonly done: Promise<Stream | undefined>;
}

/** The service's end of an open connection. */
export interface Stream {
  readonly subscription: number;
  readonly duplex: Socket;
  readonly isClosed: boolean;
  /** Sends numbered frames in one write. @param bytes - the size of each frame */
  readonly push: (count: number, bytes?: number) => void;
  /** Sends frames and a close frame in one write. */
  readonly close: (code: number | undefined, reason: string, frames?: number) => void;
  /** Sends bytes that are not a valid frame. */
  readonly breakFraming: (bytes: Buffer) => void;
  readonly reset: () => void;
  /** Ends the TCP connection without a close frame. */
  readonly end: () => void;
  /** Stops answering, pings included. */
  readonly mute: () => void;
  readonly gone: Promise<void>;
}

interface Held {
  readonly subscription: number;
  readonly socket: number;
  readonly request: IncomingMessage;
  readonly duplex: Socket;
  readonly head: Buffer;
  readonly see: (seen: Seen) => void;
}

/** Creates the held handshake of a request. */
export const heldHandshake = ({ subscription, socket, request, duplex, head, see }: Held): HeldHandshake => {
  let finish: (stream?: Stream) => void;
  const done = new Promise<Stream | undefined>((resolve) => (finish = resolve));
  let isDone = false;
  const answered = (isOpen: boolean, retryAfterMs?: number) => {
    if (isDone) return;
    isDone = true;
    see({
      what: 'handshake-answered',
      at: performance.now(),
      isOpen,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  };
  duplex
    .on('error', () => undefined)
    .on('end', () => duplex.end())
    .on('close', () => {
      see({ what: 'gone', at: performance.now(), socket });
      finish();
    });

  return {
    subscription,
    accept: (frames = 0, subprotocol = request.headers['sec-websocket-protocol']) => {
      answered(true);
      const stream = streamOver({ subscription, socket, request, duplex, head, see });
      duplex.cork();
      duplex.write(switching({ socket: duplex, request }, subprotocol));
      stream.push(frames);
      duplex.uncork();
      finish(stream);
    },
    refuse: (status, headers = {}) => {
      const seconds = Number(headers['retry-after']);
      answered(false, seconds > 0 ? seconds * 1_000 : undefined);
      const lines = Object.entries({ 'content-length': '0', connection: 'close', ...headers });
      duplex.end(`HTTP/1.1 ${status} Refused\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`);
      finish();
    },
    answerRaw: (bytes) => {
      answered(false);
      duplex.end(bytes);
      finish();
    },
    reset: () => {
      answered(false);
      resetSocket(duplex);
      finish();
    },
    done,
  };
};

const streamOver = ({ subscription, socket, duplex, head, see }: Held): Stream => {
  let seq = 0;
  let isClosed = false;
  let isMute = false;
  const frames = (count: number, bytes: number) =>
    Array.from({ length: count }, () => {
      seq += 1;
      see({ what: 'sent', at: performance.now(), socket, seq });
      return wsFrame(seq % 3 === 0 ? 2 : 1, numberedPayload({ subscription, socket, seq }, bytes));
    });
  const cut = () => see({ what: 'cut', at: performance.now(), socket });

  clientFrames(duplex, head, (opcode, payload) => {
    see({ what: 'client-frame', at: performance.now(), socket, opcode });
    if (isMute) return;
    if (opcode === 9) duplex.write(pong(payload));
    if (opcode === 8) duplex.end(isClosed ? Buffer.alloc(0) : close(1000));
  });

  return {
    subscription,
    duplex,
    get isClosed() {
      return isClosed;
    },
    push: (count, bytes = 0) => void duplex.write(Buffer.concat(frames(count, bytes))),
    close: (code, reason, count = 0) => {
      duplex.write(Buffer.concat([...frames(count, 0), close(code, reason)]));
      isClosed = true;
      see({ what: 'closed', at: performance.now(), socket });
    },
    breakFraming: (bytes) => {
      cut();
      duplex.write(bytes);
    },
    reset: () => {
      cut();
      resetSocket(duplex);
    },
    end: () => {
      duplex.end();
      see({ what: 'closed', at: performance.now(), socket });
    },
    mute: () => {
      cut();
      isMute = true;
    },
    gone: new Promise((resolve) => duplex.once('close', () => resolve())),
  };
};
