import type { Observable, SchedulerLike } from 'rxjs';
import type { Feed } from '../../protocol/feed.js';
import type { ErrorBody } from '../http/refusal.js';
import type { Payload } from '../sources/payload.js';

/** Names a plan (contract, section 1): `free` delays each frame by `limits.freeDelayMs`, `developer` does not. */
export type Plan = 'free' | 'developer';

/**
 * The limits of the service. The contract shows the first and `freeDelayMs`; the values of the others are stand-ins.
 */
export interface ServiceLimits {
  /** How long a ticket is valid, in ms. @defaultValue 60 000 (contract, section 8) */
  readonly ticketLifetimeMs: number;
  /** How long the fixed window of ticket requests is, in ms. @defaultValue 60 000 */
  readonly windowMs: number;
  /** How many ticket requests an account has in a window. @defaultValue 60 */
  readonly ticketsPerWindow: number;
  /** How many users may be live; a new user beyond it gets 503. @defaultValue Infinity */
  readonly capacity: number;
  /**
   * How many bytes of a connection may wait for its client; when a further frame is due beyond it, the connection is closed
   * with 1013. Frames that wait for the delay of the Free plan do not count: the client could not have taken them yet.
   * @defaultValue 1 MiB
   */
  readonly backlogBytes: number;
  /** The delay of each frame on the Free plan, in ms. @defaultValue 500 (contract, section 8) */
  readonly freeDelayMs: number;
  /** The largest body of a ticket request, in bytes; a larger one gets 413. @defaultValue 16 KiB */
  readonly requestBytes: number;
  /** How long a client may take to send a request, in ms; then it gets 408. @defaultValue 10 000 */
  readonly requestTimeoutMs: number;
  /** How long a client may take to read on and to answer a close frame, in ms; then its socket is destroyed. @defaultValue 10 000 */
  readonly closeTimeoutMs: number;
  /** How long `shutdown()` waits for clients, in ms; then their sockets are destroyed. @defaultValue 1 000 */
  readonly shutdownTimeoutMs: number;
}

/** Where the payloads of a feed come from. */
export type ServiceSources = { readonly [F in Feed]?: Observable<Payload> | undefined };

/** What {@link startTradeFeedService} takes. Every field is optional. */
export interface TradeFeedServiceOptions {
  /** The port on 127.0.0.1; 0 takes any free one. @defaultValue 0 */
  readonly port?: number | undefined;
  /** Key and certificate in PEM: the service then speaks `https:` and `wss:`. @defaultValue none: `http:` and `ws:` */
  readonly tls?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined;
  /**
   * The address under which clients reach the service when something stands in front of it, such as a proxy that ends TLS: an origin,
   * `https:`, or `http:` for a loopback host. Tickets name it in their `wss_url`; `baseUrl` stays the service's own address.
   * @defaultValue the service's own address
   */
  readonly publicUrl?: string | undefined;
  /**
   * Observables of payloads, each subscribed once from start to shutdown and sent to all open connections of its feed.
   * @defaultValue none: only `push` delivers
   */
  readonly sources?: ServiceSources | undefined;
  /** See {@link ServiceLimits}. */
  readonly limits?: { readonly [L in keyof ServiceLimits]?: ServiceLimits[L] | undefined } | undefined;
  /** The subprotocol of each feed; the one of `raw` is a stand-in. @defaultValue `mmp.trade-batch.v1`, `mmp.pending-transaction.v1` */
  readonly subprotocols?: { readonly [F in Feed]?: string | undefined } | undefined;
  /** The JSON body of a refusal. @defaultValue `{ "error": { "code": …, "message": … } }` */
  readonly errorBody?: ErrorBody | undefined;
  /** The time of tickets, windows and the Free plan's delay. @defaultValue real time */
  readonly scheduler?: SchedulerLike | undefined;
}

/** The options with every default filled in. */
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
