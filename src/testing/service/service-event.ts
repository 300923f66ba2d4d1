import type { Feed } from '../../protocol/feed.js';
import type { RefusalCode } from '../http/refusal.js';

/** What every event tells. `account` is an id such as `account-1`, never a key. */
interface Told {
  /** When, in epoch ms. */
  readonly at: number;
}

/** A ticket was issued (contract, section 4.1). */
export interface ServiceTicketIssued extends Told {
  readonly type: 'ticket-issued';
  readonly account: string;
  readonly feed: Feed;
  readonly expiresAt: string;
}

/** A ticket request was refused (contract, section 7.1). */
export interface ServiceTicketRefused extends Told {
  readonly type: 'ticket-refused';
  readonly status: number;
  readonly code: RefusalCode;
  /** Whose key it was; `undefined` when the key is missing or unknown. */
  readonly account: string | undefined;
  /** What `Retry-After` said, with a 429. */
  readonly retryAfterSeconds: number | undefined;
}

/** A ticket was revoked before its handshake (contract, section 3.1). */
export interface ServiceTicketRevoked extends Told {
  readonly type: 'ticket-revoked';
  readonly account: string;
  readonly feed: Feed;
}

/** A handshake was answered with 101 and the connection is registered (contract, section 3.2). */
export interface ServiceHandshakeAccepted extends Told {
  readonly type: 'handshake-accepted';
  readonly account: string;
  readonly feed: Feed;
  /** Which connection of this service: 1, 2, … */
  readonly connection: number;
}

/** A handshake was refused (contract, section 7.2). */
export interface ServiceHandshakeRefused extends Told {
  readonly type: 'handshake-refused';
  readonly status: number;
  readonly code: RefusalCode;
  /** Whose ticket it was; `undefined` when the ticket is missing or unknown. */
  readonly account: string | undefined;
  readonly feed: Feed | undefined;
}

/** A connection left the state `open` (contract, section 7.3). */
export interface ServiceConnectionClosed extends Told {
  readonly type: 'connection-closed';
  readonly account: string;
  readonly feed: Feed;
  readonly connection: number;
  /** The close code: the service's own, or the one the client sent; 1006 when there was no close frame. */
  readonly code: number;
  /** The service's reason; empty when the client closed. */
  readonly reason: string;
  readonly by: 'service' | 'client';
  /** Frames that were written to this connection. */
  readonly frames: number;
}

/** Names what a client did that the contract forbids. */
export type ViolationRule =
  /** A text or binary message (section 3.2): closes with 1008. */
  | 'client-message'
  /** A broken WebSocket frame (RFC 6455). */
  | 'protocol-error'
  /** An API key or a ticket of this service in a URL (section 4.2, rule 2). */
  | 'credential-in-url'
  /** An `X-API-Key` header in a handshake (section 4.2, rule 2). */
  | 'api-key-in-handshake'
  /** A handshake that asks for no subprotocol (section 4.2): answered, since 7.2 refuses only a requested one. */
  | 'no-subprotocol'
  /** A body that is not sent as `application/json` (section 4.1): read, since 7.1 refuses only what is not valid JSON. */
  | 'content-type'
  /** An address that the contract does not name. */
  | 'unknown-path'
  /** A method that the contract does not name for that address. */
  | 'wrong-method';

/** A client did what the contract forbids, whether or not the service refuses it. */
export interface ServiceViolation extends Told {
  readonly type: 'violation';
  readonly rule: ViolationRule;
  readonly account?: string | undefined;
  readonly feed?: Feed | undefined;
  readonly connection?: number | undefined;
}

/** A source ended; the service goes on, and so do its connections. */
export interface ServiceSourceEnded extends Told {
  readonly type: 'source-ended';
  readonly feed: Feed;
  /** What the source failed with; `undefined` when it completed. */
  readonly error: unknown;
}

/** What the service saw, told apart by `type`. No event holds a key or a ticket. */
export type ServiceEvent =
  | ServiceTicketIssued
  | ServiceTicketRefused
  | ServiceTicketRevoked
  | ServiceHandshakeAccepted
  | ServiceHandshakeRefused
  | ServiceConnectionClosed
  | ServiceViolation
  | ServiceSourceEnded;

type Untimed<E> = E extends Told ? Omit<E, 'at'> : never;

/** Tells an event; the time is added. */
export type Tell = (event: Untimed<ServiceEvent>) => void;
