import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { CloseCode, CloseReason } from '../protocol/contract.js';
import type { Feed } from '../protocol/feed.js';
import type { Payload, ServiceSettings } from './service-options.js';
import type { ServiceConnectionClosed } from './service.js';

interface CloseFrame {
  readonly code: number;
  readonly reason: string;
}

/** The close frames of the service (contract, section 7.3). */
export const closing = {
  replaced: { code: CloseCode.connectionReplaced, reason: CloseReason.connectionReplaced },
  clientMessage: { code: CloseCode.serverPushOnly, reason: CloseReason.serverPushOnly },
  accessExpired: { code: CloseCode.accessLost, reason: CloseReason.accessExpired },
  accessRevoked: { code: CloseCode.accessLost, reason: CloseReason.accessRevoked },
  clientTooSlow: { code: CloseCode.clientTooSlow, reason: CloseReason.clientTooSlow },
  shutdown: { code: CloseCode.serverShutdown, reason: CloseReason.serverShutdown },
  // Not in the contract: RFC 6455, section 7.4.1.
  protocolError: { code: 1002, reason: '' },
} as const;

type ConnectionEnd = Pick<ServiceConnectionClosed, 'code' | 'reason' | 'by' | 'frames'>;

interface ConnectionObserver {
  readonly onViolation: (rule: 'client-message' | 'protocol-error') => void;
  /** Called once, for whatever ends the connection first. */
  readonly onClosed: (end: ConnectionEnd) => void;
}

export interface Message {
  readonly data: Buffer;
  readonly binary: boolean;
}

/** Copies a payload once for all connections, because its sender may change it later. */
export const messageOf = (payload: Payload): Message => ({
  data: Buffer.from(payload as Uint8Array),
  binary: typeof payload !== 'string',
});

// `WebSocket.OPEN`, without loading `ws`.
const OPEN = 1;

/** Passes frames to the socket once they reach this many bytes, rather than at the end of the event loop's turn. */
const burstBytes = 64 * 1024;

/**
 * An open connection of an account (contract, section 3.2). Writes the frames of one turn of the event loop in a single
 * system call.
 *
 * The backlog is what the operating system won't take from the socket because the client doesn't read. A client that
 * has more than `backlogBytes` of it when a burst starts is too slow. The burst itself doesn't count, so a single frame
 * may be larger.
 */
export class Connection {
  readonly feed: Feed;
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #settings: ServiceSettings;
  readonly #observer: ConnectionObserver;
  #isOpen = true;
  #frames = 0;
  /** The bytes of the current burst, while the socket is corked for it. */
  #corkedBytes: number | undefined;

  constructor(feed: Feed, ws: WebSocket, socket: Duplex, settings: ServiceSettings, observer: ConnectionObserver) {
    this.feed = feed;
    this.#ws = ws;
    this.#socket = socket;
    this.#settings = settings;
    this.#observer = observer;
    ws.on('message', () => this.#violate('client-message', closing.clientMessage));
    // `ws` is already closing here. If the message was too large, `PushOnlySocket` sends 1008 instead of 1009.
    ws.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') this.#violate('client-message', closing.clientMessage);
      else this.#violate('protocol-error', closing.protocolError);
    });
    ws.on('close', (code) => this.#end({ code, reason: '' }, 'client', () => undefined));
  }

  send({ data, binary }: Message): void {
    if (!this.#isWritable) return;
    if (this.#corkedBytes === undefined) {
      if (this.#socket.writableLength > this.#settings.limits.backlogBytes) return this.close(closing.clientTooSlow);
      this.#socket.cork();
      this.#corkedBytes = 0;
      process.nextTick(() => this.#flush());
    }
    this.#ws.send(data, { binary });
    this.#frames += 1;
    this.#corkedBytes += data.length;
    if (this.#corkedBytes >= burstBytes) this.#flush();
  }

  /** Closes with a close frame, unless the client is already closing. */
  close(frame: CloseFrame): void {
    if (this.#isWritable) this.#end(frame, 'service', () => this.#ws.close(frame.code, frame.reason));
  }

  /** Ends the connection without a close frame, once the frames before are out. */
  drop(): void {
    if (this.#isWritable) this.#end({ code: 1006, reason: '' }, 'service', () => this.#socket.destroy());
  }

  // A client that is closing gets no more frames, although its socket is still open.
  get #isWritable(): boolean {
    return this.#isOpen && this.#ws.readyState === OPEN;
  }

  #flush(): void {
    if (this.#corkedBytes !== undefined) this.#socket.uncork();
    this.#corkedBytes = undefined;
  }

  #violate(rule: 'client-message' | 'protocol-error', frame: CloseFrame): void {
    if (this.#isOpen) this.#observer.onViolation(rule);
    this.#end(frame, 'service', () => this.#ws.close(frame.code, frame.reason));
  }

  #end({ code, reason }: CloseFrame, by: ConnectionEnd['by'], act: () => void): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#flush();
    act();
    this.#observer.onClosed({ code, reason, by, frames: this.#frames });
  }
}
