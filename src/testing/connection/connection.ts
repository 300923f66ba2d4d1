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
  /** Sends an encoded frame, now or after the delay. */
  send(frame: Buffer): void;
  /** Turns the delay of the Free plan on or off. */
  setDelayed(isDelayed: boolean): void;
  /** Sends a signal to the state machine. */
  signal(signal: ConnectionSignal): void;
}

/** The parameters of {@link createConnection}. */
export interface ConnectionParts {
  readonly account: string;
  readonly feed: Feed;
  readonly ws: WebSocket;
  readonly socket: Duplex;
  readonly limits: ServiceLimits;
  readonly scheduler: SchedulerLike;
  readonly isDelayed: boolean;
  /** Called when the client broke a rule. The connection is closed next. */
  readonly onViolation: (rule: 'client-message' | 'protocol-error') => void;
  /** Called when the connection left the state `open`. */
  readonly onClosed: (end: ConnectionEnd) => void;
}

/** The end of a connection. */
export interface ConnectionEnd {
  readonly code: number;
  readonly reason: string;
  readonly by: 'service' | 'client';
  readonly frames: number;
}

/** Creates a connection in the state `none`. The signal `register` opens it. */
export const createConnection = (parts: ConnectionParts): Connection => {
  const { account, feed, ws, socket, limits, scheduler, onViolation, onClosed } = parts;
  let state: ConnectionState = 'none';
  let isDelayed = parts.isDelayed && limits.freeDelayMs > 0;
  let frames = 0;

  const outbox = createOutbox(socket, limits.backlogBytes);
  const write = (frame: Buffer): void => {
    // A client that has begun to close receives no more frames, although its socket is still open.
    if (state !== 'open' || ws.readyState !== WebSocket.OPEN) return;
    if (outbox.write(frame)) frames += 1;
    else signal('backlog');
  };
  const delayed = createDelayQueue(limits.freeDelayMs, scheduler, write);

  const signal = (name: ConnectionSignal, clientCode = 1006): void => {
    const transition = connectionTransitions[state][name];
    // Only the first close is reported. If the client has begun to close, the service does not start a second close.
    if (transition === undefined || (closesByService.has(name) && ws.readyState !== WebSocket.OPEN)) return;
    state = transition.next;
    if (state === 'open') return;
    delayed.clear();
    outbox.flush();
    if (transition.close) ws.close(transition.close.code, transition.close.reason);
    const code = transition.close?.code ?? clientCode;
    onClosed({ code, reason: transition.close?.reason ?? '', by: transition.close ? 'service' : 'client', frames });
  };

  const violate = (rule: 'client-message' | 'protocol-error'): void => {
    if (state === 'open') onViolation(rule);
    signal(rule);
  };
  ws.on('message', () => violate('client-message'));
  // At this event, `ws` has already begun to close: for a message that is too large, `PushOnlySocket` sends 1008 instead of 1009.
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

/** The signals by which the service itself starts the close. */
const closesByService: ReadonlySet<ConnectionSignal> = new Set([
  'replace',
  'access-expired',
  'access-revoked',
  'backlog',
  'shutdown',
]);
