import type { Observable, SchedulerLike } from 'rxjs';
import type { Feed } from '../../protocol/feed.js';
import type { ErrorBody } from '../http/refusal.js';
import type { Payload } from '../connection/encode-frame.js';

/** A plan (contract, section 1): `free` delays each frame by `limits.freeDelayMs`, `developer` does not. */
export type Plan = 'free' | 'developer';

/** The limits of the service. `ticketLifetimeMs` and `freeDelayMs` are from the contract; the other defaults are chosen by this library. */
export interface ServiceLimits {
  /** How long a ticket is valid, in ms. @defaultValue 60 000 (contract, section 8) */
  readonly ticketLifetimeMs: number;
  /** The duration of the fixed window of ticket requests, in ms. @defaultValue 60 000 */
  readonly windowMs: number;
  /** The maximum number of ticket requests of an account in a window. @defaultValue 60 */
  readonly ticketsPerWindow: number;
  /** The maximum number of users with a live connection; a further user gets 503. @defaultValue Infinity */
  readonly capacity: number;
  /**
   * The maximum number of bytes that may wait for the client of a connection. If more wait when a frame is sent, the service closes the connection
   * with 1013. Frames that wait for the delay of the Free plan do not count. @defaultValue 1 MiB
   */
  readonly backlogBytes: number;
  /** The delay of each frame on the Free plan, in ms. @defaultValue 500 (contract, section 8) */
  readonly freeDelayMs: number;
  /** The maximum size of the body of a ticket request, in bytes; a larger body gets 413. @defaultValue 16 KiB */
  readonly requestBytes: number;
  /** How long a client may take to send a request, in ms; then it gets 408. @defaultValue 10 000 */
  readonly requestTimeoutMs: number;
  /** How long a client may take to read the remaining frames and to answer a close frame, in ms; then its socket is destroyed. @defaultValue 10 000 */
  readonly closeTimeoutMs: number;
  /** How long `shutdown()` waits for clients, in ms; then their sockets are destroyed. @defaultValue 1 000 */
  readonly shutdownTimeoutMs: number;
}

/** The source of each feed's payloads. */
export type ServiceSources = { readonly [F in Feed]?: Observable<Payload> | undefined };

/** The options of {@link startTradeFeedService}. */
export interface TradeFeedServiceOptions {
  /** The port on 127.0.0.1; 0 selects a free port. @defaultValue 0 */
  readonly port?: number | undefined;
  /** Key and certificate in PEM. With them, the service uses `https:` and `wss:`. @defaultValue none: `http:` and `ws:` */
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined;
  /**
   * The address that clients use if they connect through a proxy, for example one that terminates TLS: an origin with `https:`, or with `http:` for a
   * loopback host. The `wss_url` of tickets uses it; `baseUrl` remains the address of the service.
   * @defaultValue the address of the service
   */
  readonly publicUrl?: string | undefined;
  /**
   * The payloads of each feed. The service subscribes to each Observable once, from start to shutdown, and sends its payloads to all open connections
   * of the feed. @defaultValue none: only `push` sends payloads
   */
  readonly sources?: ServiceSources | undefined;
  /** See {@link ServiceLimits}. */
  readonly limits?: { readonly [L in keyof ServiceLimits]?: ServiceLimits[L] | undefined } | undefined;
  /** The subprotocol of each feed; the contract does not show the subprotocol of `raw`. @defaultValue `mmp.trade-batch.v1`, `mmp.pending-transaction.v1` */
  readonly subprotocols?: { readonly [F in Feed]?: string | undefined } | undefined;
  /** The JSON body of a refusal. @defaultValue `{ "error": { "code": …, "message": … } }` */
  readonly errorBody?: ErrorBody | undefined;
  /** The clock of tickets, windows and the delay of the Free plan. @defaultValue real time */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The options with all defaults. */
export interface ServiceSettings {
  readonly port: number;
  readonly tls: TradeFeedServiceOptions['tls'];
  readonly publicUrl: string | undefined;
  readonly sources: ServiceSources;
  readonly limits: ServiceLimits;
  readonly subprotocols: Readonly<Record<Feed, string>>;
  readonly errorBody: ErrorBody;
  readonly scheduler: SchedulerLike;
}
