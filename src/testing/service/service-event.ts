import type { Feed } from '../../protocol/feed.js';
import type { RefusalCode } from '../http/refusal.js';

/** The fields of every event. `account` is always an id such as `account-1`, never a key. */
interface TimedEvent {
  /** When the event happened, in epoch ms. */
  readonly at: number;
}

/** A ticket was issued (contract, section 4.1). */
export interface ServiceTicketIssued extends TimedEvent {
  readonly type: 'ticket-issued';
  readonly account: string;
  readonly feed: Feed;
  readonly expiresAt: string;
}

/** A ticket request was refused (contract, section 7.1). */
export interface ServiceTicketRefused extends TimedEvent {
  readonly type: 'ticket-refused';
  readonly status: number;
  readonly code: RefusalCode;
  /** The account of the key; `undefined` if the key is missing or unknown. */
  readonly account: string | undefined;
  /** The `Retry-After` of a 429. */
  readonly retryAfterSeconds: number | undefined;
}

/** A ticket was revoked before its handshake (contract, section 3.1). */
export interface ServiceTicketRevoked extends TimedEvent {
  readonly type: 'ticket-revoked';
  readonly account: string;
  readonly feed: Feed;
}

/** A handshake was answered with 101 and the connection is registered (contract, section 3.2). */
export interface ServiceHandshakeAccepted extends TimedEvent {
  readonly type: 'handshake-accepted';
  readonly account: string;
  readonly feed: Feed;
  /** The number of the connection in this service: 1, 2, … */
  readonly connection: number;
}

/** A handshake was refused (contract, section 7.2). */
export interface ServiceHandshakeRefused extends TimedEvent {
  readonly type: 'handshake-refused';
  readonly status: number;
  readonly code: RefusalCode;
  /** The account of the ticket; `undefined` if the ticket is missing or unknown. */
  readonly account: string | undefined;
  readonly feed: Feed | undefined;
}

/** A connection left the state `open` (contract, section 7.3). */
export interface ServiceConnectionClosed extends TimedEvent {
  readonly type: 'connection-closed';
  readonly account: string;
  readonly feed: Feed;
  readonly connection: number;
  /** The close code that the service or the client sent; 1006 without a close frame. */
  readonly code: number;
  /** The close reason of the service; empty if the client closed. */
  readonly reason: string;
  readonly by: 'service' | 'client';
  /** Frames that were written to this connection. */
  readonly frames: number;
}

/** The rules of the contract that a client can violate. */
export type ViolationRule =
  /** A text or binary message (section 3.2): closes with 1008. */
  | 'client-message'
  /** A broken WebSocket frame (RFC 6455). */
  | 'protocol-error'
  /** An API key or a ticket of this service in a URL (section 4.2, rule 2). */
  | 'credential-in-url'
  /** An `X-API-Key` header in a handshake (section 4.2, rule 2). */
  | 'api-key-in-handshake'
  /** A handshake without a subprotocol (section 4.2). Accepted, because 7.2 refuses only a wrong requested one. */
  | 'no-subprotocol'
  /** A body that is not sent as `application/json` (section 4.1). Accepted, because 7.1 refuses only invalid JSON. */
  | 'content-type'
  /** An address that is not in the contract. */
  | 'unknown-path'
  /** A method that the contract does not allow at this address. */
  | 'wrong-method';

/** A client violated a rule of the contract. The service may accept the request nevertheless. */
export interface ServiceViolation extends TimedEvent {
  readonly type: 'violation';
  readonly rule: ViolationRule;
  readonly account?: string | undefined;
  readonly feed?: Feed | undefined;
  readonly connection?: number | undefined;
}

/** A source ended. The service and its connections continue. */
export interface ServiceSourceEnded extends TimedEvent {
  readonly type: 'source-ended';
  readonly feed: Feed;
  /** The error of the source; `undefined` if it completed. */
  readonly error: unknown;
}

/** An event of the service, by `type`. No event contains a key or a ticket. */
export type ServiceEvent =
  | ServiceTicketIssued
  | ServiceTicketRefused
  | ServiceTicketRevoked
  | ServiceHandshakeAccepted
  | ServiceHandshakeRefused
  | ServiceConnectionClosed
  | ServiceViolation
  | ServiceSourceEnded;

type Untimed<E> = E extends TimedEvent ? Omit<E, 'at'> : never;

/** Emits an event, with the time added. */
export type EmitServiceEvent = (event: Untimed<ServiceEvent>) => void;
