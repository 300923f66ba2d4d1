import type { Duplex } from 'node:stream';
import type { SchedulerLike } from 'rxjs';
import { WebSocket } from 'ws';
import type { Feed } from '../../protocol/feed.js';
import type { ServiceLimits } from '../options/service-options.js';
import { type ConnectionSignal, type ConnectionState, connectionTransitions } from './connection-state.js';
import { createDelayQueue } from './delay-queue.js';
import { createOutbox } from './outbox.js';

/** A live connection of an account. */
export interface Connection {
  readonly account: string;
  readonly feed: Feed;
  /** Sends a frame that is encoded already, now or after the delay. */
  send(frame: Buffer): void;
  /** Turns the delay of the Free plan on or off. */
  setDelayed(isDelayed: boolean): void;
  /** Moves the state machine. */
  signal(signal: ConnectionSignal): void;
}

/** What a connection is made of. */
export interface ConnectionParts {
  readonly account: string;
  readonly feed: Feed;
  readonly ws: WebSocket;
  readonly socket: Duplex;
  readonly limits: ServiceLimits;
  readonly scheduler: SchedulerLike;
  readonly isDelayed: boolean;
  /** A client broke a rule; its close follows. */
  readonly onViolation: (rule: 'client-message' | 'protocol-error') => void;
  /** The connection left the state `open`. */
  readonly onClosed: (end: ConnectionEnd) => void;
}

/** How a connection ended. */
export interface ConnectionEnd {
  readonly code: number;
  readonly reason: string;
  readonly by: 'service' | 'client';
  readonly frames: number;
}

/** Makes a connection in the state `none`; the signal `register` opens it. */
export const createConnection = (parts: ConnectionParts): Connection => {
  const { account, feed, ws, socket, limits, scheduler, onViolation, onClosed } = parts;
  let state: ConnectionState = 'none';
  let isDelayed = parts.isDelayed && limits.freeDelayMs > 0;
  let frames = 0;

  const outbox = createOutbox(socket, limits.backlogBytes);
  const write = (frame: Buffer): void => {
    // A client that has begun to close takes no more frames, though its socket is still there.
    if (state !== 'open' || ws.readyState !== WebSocket.OPEN) return;
    if (outbox.write(frame)) frames += 1;
    else signal('backlog');
  };
  const delayed = createDelayQueue(limits.freeDelayMs, scheduler, write);

  const signal = (name: ConnectionSignal, clientCode = 1006): void => {
    const move = connectionTransitions[state][name];
    // Whoever closes first is told: a client that has begun to close is not also replaced or shut down.
    if (move === undefined || (ofService.has(name) && ws.readyState !== WebSocket.OPEN)) return;
    state = move.next;
    if (state === 'open') return;
    delayed.clear();
    outbox.flush();
    if (move.close) ws.close(move.close.code, move.close.reason);
    const code = move.close?.code ?? clientCode;
    onClosed({ code, reason: move.close?.reason ?? '', by: move.close ? 'service' : 'client', frames });
  };

  const violate = (rule: 'client-message' | 'protocol-error'): void => {
    if (state === 'open') onViolation(rule);
    signal(rule);
  };
  ws.on('message', () => violate('client-message'));
  // ws has begun to close by now, with 1008 in place of 1009.
  ws.on('error', (error: Error & { code?: string }) =>
    violate(error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH' ? 'client-message' : 'protocol-error'),
  );
  ws.on('close', (code) => signal('client-gone', code));

  return {
    account,
    feed,
    send: (frame) => (isDelayed ? delayed.push(frame) : write(frame)),
    setDelayed: (next) => {
      isDelayed = next && limits.freeDelayMs > 0;
      if (!isDelayed) delayed.flush();
    },
    signal: (name) => signal(name),
  };
};

/** The signals by which the service closes of its own accord. */
const ofService: ReadonlySet<ConnectionSignal> = new Set([
  'replace',
  'access-expired',
  'access-revoked',
  'backlog',
  'shutdown',
]);
