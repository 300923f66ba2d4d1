import type { Observable } from 'rxjs';
import type { Feed } from '../protocol/feed.js';
import type { RefusalCode } from './answers.js';
import type { HandshakeBehavior, Payload, Plan, TicketEndpointBehavior, WaitingFrames } from './service-options.js';

/** The options of {@link TradeFeedService.restart}. */
export interface RestartOptions {
  /** How to end open connections: `close` with 1001, `drop` without a close frame. @defaultValue `close` */
  readonly connections?: 'close' | 'drop' | undefined;
  /** How long the port refuses connections, in ms. A shutdown ends it, and the restart rejects. @defaultValue 0 */
  readonly downMs?: number | undefined;
}

/**
 * A Real-time Trade Feed Service in this process, on loopback. {@link startTradeFeedService} starts one. Its methods
 * throw a `TradeFeedError` with code `invalid-options` for invalid values.
 *
 * @see the contract, all sections
 */
export interface TradeFeedService extends AsyncDisposable {
  /** The base address: `http://127.0.0.1:PORT`, or `https:` if `tls` is set. `publicUrl` doesn't change it. */
  readonly baseUrl: string;
  /**
   * Emits what the service sees: tickets, handshakes, closes, violations. Hot; continues through a restart,
   * completes at the shutdown, never errors. No event contains a key or a ticket.
   */
  readonly events$: Observable<ServiceEvent>;
  /** Creates an account, by default on the Free plan. */
  createAccount(options?: AccountOptions): TradeFeedAccount;
  /** Revokes a ticket (contract, section 3.1). Returns `false` if it is unknown, used, expired or already revoked. */
  revokeTicket(ticket: string): boolean;
  /** Sets how many users can be live. Open connections stay open. */
  setCapacity(users: number): void;
  /** Makes the credential service fail (every ticket request gets 503) or recover. */
  failCredentials(isFailing: boolean): void;
  /**
   * Makes the ticket endpoint slow, unreachable or answer whatever you like, from the next request on.
   * `normal` ends that. An answer of yours emits the event `fault`.
   *
   * @example
   * ```ts
   * import { startTradeFeedService } from 'rx-trade-feed/testing';
   *
   * const service = await startTradeFeedService();
   * service.setTicketEndpoint('unreachable');
   * service.setTicketEndpoint({ delayMs: 3_000 });
   * service.setTicketEndpoint({ status: 429, headers: { 'Retry-After': '1' } });
   * service.setTicketEndpoint({ body: '<html>' });
   * service.setTicketEndpoint('normal');
   * await service.shutdown();
   * ```
   */
  setTicketEndpoint(behavior: TicketEndpointBehavior): void;
  /** Does the same to the handshake. An answer of yours doesn't use up the ticket. Open connections stay open. */
  setHandshake(behavior: HandshakeBehavior): void;
  /**
   * Sets what becomes of the frames that wait for the Free plan's delay when a connection closes. The contract (sections
   * 6 and 8) doesn't say. `drop` is the default.
   *
   * - `drop`: they're lost, and a new connection gets only what you push while it's open.
   * - `send-when-due`: the delay runs on, with or without a connection. Each frame goes to the connection that is open
   *   when the delay is over, and is lost if none is.
   * - `send-on-reconnect`: the account's next connection gets them at once, so its first frames are from before the
   *   outage. What you push during the outage is lost.
   *
   * For an account that isn't connected, at most 64 MiB wait, and this call drops them.
   *
   * @example
   * ```ts
   * import { startTradeFeedService } from 'rx-trade-feed/testing';
   *
   * const service = await startTradeFeedService();
   * service.setWaitingFrames('send-on-reconnect');
   * await service.shutdown();
   * ```
   */
  setWaitingFrames(behavior: WaitingFrames): void;
  /** Drops every open connection without a close frame: clients see 1006. Sends the frames that you pushed before. */
  dropConnections(): void;
  /**
   * Closes every open connection with a close frame.
   *
   * @param code - 1000 to 1003, 1007 to 1014 or 3000 to 4999: the codes that a close frame can carry
   * @param reason - at most 123 bytes. @defaultValue none
   */
  closeConnections(code: number, reason?: string): void;
  /**
   * Makes the service silent, like a network that loses every packet. Open connections neither send (not even pongs or
   * close frames) nor read. TCP and TLS connections are still accepted, but ticket requests and handshakes get no
   * answer. Frames that you push wait: more than `limits.backlogBytes` of them make the client too slow (1013). Lasts
   * until {@link TradeFeedService.resume}, a restart or the shutdown.
   */
  stall(): void;
  /** Ends a stall: sends the pushed frames, and answers the requests whose clients are still waiting. */
  resume(): void;
  /**
   * Restarts the service on the same port, which refuses connections in between. Ends open connections and forgets all
   * tickets, but keeps accounts, keys, `events$`, sources and everything you have set.
   *
   * @returns resolves when the service listens again; rejects with a TradeFeedError (`invalid-options`), an Error after
   *   the shutdown, or the system's error if another program took the port
   */
  restart(options?: RestartOptions): Promise<void>;
  /**
   * Sends a payload to every open connection of a feed: a text frame for a string, a binary frame for bytes. The
   * service doesn't store payloads, so a connection gets only what you push while it's open, unless you have called
   * {@link TradeFeedService.setWaitingFrames}.
   */
  push(feed: Feed, payload: Payload): void;
  /**
   * Allows the process to exit while the service is listening, like Node's `server.unref()`. Open connections and
   * sources with timers still keep it running.
   */
  unref(): void;
  /**
   * Closes every connection with 1001 `server shutdown`, stops listening, and releases all resources. Destroys the
   * sockets of clients that don't answer within `limits.shutdownTimeoutMs`. Further calls return the same promise.
   */
  shutdown(): Promise<void>;
}

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

/** A handshake got 101, and the connection is registered (contract, section 3.2). */
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

/** A connection is no longer `open` (contract, section 7.3). */
export interface ServiceConnectionClosed extends TimedEvent {
  readonly type: 'connection-closed';
  readonly account: string;
  readonly feed: Feed;
  readonly connection: number;
  /** The close code that the service or the client sent; 1006 if there was no close frame. */
  readonly code: number;
  /** The service's close reason; empty if the client closed. */
  readonly reason: string;
  readonly by: 'service' | 'client';
  /** How many frames were written to this connection. */
  readonly frames: number;
}

/** The rules of the contract that a client can break. */
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

/** A client broke a rule of the contract. The service may still accept the request. */
export interface ServiceViolation extends TimedEvent {
  readonly type: 'violation';
  readonly rule: ViolationRule;
  readonly account?: string | undefined;
  readonly feed?: Feed | undefined;
  readonly connection?: number | undefined;
}

/** A request got the answer that you set with `setTicketEndpoint` or `setHandshake`. */
export interface ServiceFault extends TimedEvent {
  readonly type: 'fault';
  readonly endpoint: 'ticket' | 'handshake';
  /** The status of the answer; `undefined` for `unreachable`. */
  readonly status: number | undefined;
}

/** A source ended. The service and its connections carry on. */
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
  | ServiceFault
  | ServiceSourceEnded;

/** The options of {@link TradeFeedService.createAccount}. */
export interface AccountOptions {
  /** The plan of the account. @defaultValue `free`, like new accounts in the contract (section 1) */
  readonly plan?: Plan | undefined;
  /** Whether the account is active. If not, its ticket requests get 403. @defaultValue true */
  readonly active?: boolean | undefined;
  /** Whether the account is entitled to the stream. If not, its ticket requests get 403. @defaultValue true */
  readonly entitled?: boolean | undefined;
}

/**
 * An account of the service (the contract says "user"): at most one live connection for all its keys and both feeds.
 *
 * @see the contract, sections 1, 2.3 and 5
 */
export interface TradeFeedAccount {
  /** The id of the account in `events$`: `account-1`, … */
  readonly id: string;
  /** The current plan. */
  readonly plan: Plan;
  /**
   * Creates an API key and returns it. You can't read it again later.
   *
   * @param key - a fixed key, such as the one in the configuration of your app. @defaultValue a random key
   */
  createApiKey(key?: string): string;
  /** Closes the live connection with 4003 `access expired`. The next ticket request succeeds. */
  expireAccess(): void;
  /**
   * Removes the entitlement: closes the live connection with 4003 `access revoked`, revokes all unused tickets, and
   * answers ticket requests with 403 until {@link TradeFeedAccount.restoreAccess}.
   */
  revokeAccess(): void;
  /** Makes the account active and entitled. */
  restoreAccess(): void;
  /**
   * Changes the plan, even for the live connection. `developer` sends delayed frames at once and stops the delay;
   * `free` delays from the next frame on. Frames stay in order.
   */
  setPlan(plan: Plan): void;
}
