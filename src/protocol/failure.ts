/** Names the stage of an attempt: the ticket request, the handshake, the open stream. */
export type Stage = 'ticket' | 'handshake' | 'stream';

/**
 * Says what a failure asks for: `stop` (the feed errors), `renew` (a fresh ticket at once if the last connection was
 * stable, else backoff), `wait` (as long as the service says, then a fresh ticket), `backoff` (wait by the policy, then a
 * fresh ticket).
 */
export type Verdict = 'stop' | 'renew' | 'wait' | 'backoff';

/** Names every failure between this library and the service. */
export type ServiceFailureCode =
  | 'invalid-options'
  | 'api-key-unavailable'
  | 'invalid-api-key'
  | 'not-entitled'
  | 'invalid-ticket-request'
  | 'ticket-rate-limited'
  | 'credential-service-unavailable'
  | 'ticket-request-failed'
  | 'ticket-request-rejected'
  | 'ticket-endpoint-unreachable'
  | 'untrusted-certificate'
  | 'invalid-ticket'
  | 'handshake-rejected'
  | 'ticket-rejected'
  | 'capacity-full'
  | 'subprotocol-mismatch'
  | 'handshake-failed'
  | 'handshake-unreachable'
  | 'ticket-expired'
  | 'connection-replaced'
  | 'policy-violation'
  | 'access-expired'
  | 'access-revoked'
  | 'client-too-slow'
  | 'server-shutdown'
  | 'connection-lost'
  | 'connection-stalled'
  | 'invalid-frame'
  | 'connection-closed'
  | 'retries-exhausted';

/** Names every failure between a relay and those who receive from it. */
export type RelayFailureCode =
  | 'relay-unreachable'
  | 'relay-headers-failed'
  | 'relay-refused'
  | 'relay-full'
  | 'relay-failed'
  | 'invalid-relay'
  | 'relay-lost'
  | 'relay-closing'
  | 'relay-session-ended'
  | 'relay-stalled'
  | 'invalid-relay-data'
  | 'relay-behind'
  | 'relay-source-failed';

/** Names every failure between the main thread and a worker that receives for it. */
export type ReceiverFailureCode = 'receiver-too-slow' | 'receiver-failed';

/** Names every failure. Branch on these, never on a message. */
export type FailureCode = ServiceFailureCode | RelayFailureCode | ReceiverFailureCode;

/**
 * What was observed when an attempt ended. An HTTP status or a close code says it all; what the client saw by itself (a
 * timeout, a bad frame) has neither and is named by its `code`.
 */
export interface FailureFacts {
  readonly stage: Stage;
  readonly code?: FailureCode | undefined;
  /** HTTP status of the ticket response or of the handshake. */
  readonly status?: number | undefined;
  /** WebSocket close code (contract, section 7.3). */
  readonly closeCode?: number | undefined;
  /** The close reason, as sent. */
  readonly reason?: string | undefined;
  /** What the service asked for in `Retry-After`, in ms. */
  readonly retryAfterMs?: number | undefined;
  /** How long the connection had been open, in ms; 0 when it never opened. */
  readonly uptimeMs?: number | undefined;
  /** Frames that this connection had delivered. */
  readonly framesReceived?: number | undefined;
  /** When the attempt ended, in epoch ms; for a stalled connection when it was last heard. */
  readonly endedAt?: number | undefined;
  /** A few words more, put into the message: the bad field, the option's name. */
  readonly detail?: string | undefined;
  readonly cause?: unknown;
}

/** The fields of a {@link TradeFeedError}. */
export interface FailureFields extends Omit<FailureFacts, 'detail'> {
  readonly code: FailureCode;
  readonly message: string;
  readonly verdict: Verdict;
  readonly advice: string;
  /** What happened, in fixed words. Give it for words that anybody may read, and `advice` with it: {@link TradeFeedError.toPublic} keeps both. */
  readonly meaning?: string | undefined;
  readonly previous?: TradeFeedError | undefined;
  readonly stack?: string | undefined;
}

/**
 * Whatever ended an attempt, and the only error that the feed itself raises.
 *
 * It holds everything that a reconnect policy needs, and no secret. {@link tradeFeedError} makes one from what was observed.
 *
 * @example
 * ```ts
 * import { TradeFeedError, tradeFeed$ } from 'rx-trade-feed';
 *
 * tradeFeed$('market').subscribe({
 *   error: (error) => {
 *     if (error instanceof TradeFeedError && error.code === 'connection-replaced') console.error(error.advice);
 *   },
 * });
 * ```
 */
export class TradeFeedError extends Error {
  override readonly name = 'TradeFeedError';
  /** What happened, as a stable word to branch on. */
  declare readonly code: FailureCode;
  /** At which stage of the attempt. */
  declare readonly stage: Stage;
  /** What to do about it, as the policy sees it. */
  declare readonly verdict: Verdict;
  /** What to do about it, in one sentence for a person. */
  declare readonly advice: string;
  /** What happened, in the fixed words of the library, without what was observed. Missing when the failure does not come from its tables. */
  declare readonly meaning?: string;
  /** How long the connection had been open, in ms; 0 when it never opened. */
  declare readonly uptimeMs: number;
  /** Frames that this connection had delivered. */
  declare readonly framesReceived: number;
  /** When the attempt ended, in epoch ms; for a stalled connection when it was last heard. */
  declare readonly endedAt: number;
  /** HTTP status, when there was one. */
  declare readonly status?: number;
  /** WebSocket close code, when there was one. */
  declare readonly closeCode?: number;
  /** Close reason, when there was a close code. */
  declare readonly reason?: string;
  /** What the service asked for in `Retry-After`, in ms. */
  declare readonly retryAfterMs?: number;
  /** The failure before this one, when a reconnect led here. One link: it has no `previous` of its own. */
  declare readonly previous?: TradeFeedError;

  constructor({ message, cause, stack, ...fields }: FailureFields) {
    super(message, cause === undefined ? undefined : { cause });
    const known = Object.entries(fields).filter(([, value]) => value !== undefined);
    // Until it is read, a stack keeps every object alive that was on it: a closed socket, the failure before, and so on.
    this.stack = stack ?? String(this.stack);
    Object.assign(this, { uptimeMs: 0, framesReceived: 0, endedAt: Date.now() }, Object.fromEntries(known));
  }

  /**
   * Makes the same failure with some fields changed; the message gives the new advice.
   *
   * New advice may name what is private, so it takes the `meaning` away, unless that is given with it: both are public then.
   */
  with(changes: Partial<Pick<FailureFields, 'verdict' | 'advice' | 'meaning' | 'previous'>>): TradeFeedError {
    const advised = (text: string) => text.replace(this.advice, () => changes.advice ?? this.advice);
    const { message, cause, stack } = this;
    const meaning = changes.advice === undefined ? this.meaning : undefined;
    const texts = { message: advised(message), cause, stack: advised(String(stack)), meaning };
    return new TradeFeedError({ ...this, ...texts, ...changes });
  }

  /**
   * Makes the failure that may leave the server: for a page, a health answer, a status for everybody.
   *
   * Keeps code, stage, verdict, status, close code, times and counts. Its message is the `meaning` with the `advice`, and nothing that was
   * observed or thrown: no detail, no close reason, no cause, no stack. The same holds for `previous`; of `retries-exhausted` it is the last
   * failure, which is its cause here. Without a `meaning` it says that the feed failed. The failure itself is for the log of the server.
   */
  toPublic(): TradeFeedError {
    const { meaning, advice } = this.meaning ? this : unknown;
    const message = `${meaning} ${advice}`;
    const known = knownFields({ ...(this as object), meaning, advice, message, reason: undefined });
    const before = this.cause instanceof TradeFeedError ? this.cause.with({ previous: undefined }) : this.previous;
    return new TradeFeedError({ ...known, stack: `${this.name}: ${message}`, previous: before?.toPublic() });
  }

  /** Gives the error as plain data, without its cause and stack. */
  toJSON(): Record<string, unknown> {
    return { ...(this as object), name: this.name, message: this.message };
  }
}

/** Picks the fields of a failure that are of the right type, apart from `previous`, `cause` and `stack`. */
export const knownFields = (fields: Readonly<Record<string, unknown>>): FailureFields => {
  const right = Object.entries(allowed).filter(([name, is]) => is(fields[name]));
  return Object.fromEntries(right.map(([name]) => [name, fields[name]])) as unknown as FailureFields;
};

/** Lists the verdicts. */
export const verdicts: readonly Verdict[] = ['stop', 'renew', 'wait', 'backoff'];

const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number';
const oneOf = (words: readonly unknown[]) => words.includes.bind(words);

const allowed: Readonly<Record<string, (value: unknown) => boolean>> = {
  // A newer version may know more codes than this one.
  code: isText,
  message: isText,
  stage: oneOf(['ticket', 'handshake', 'stream'] satisfies Stage[]),
  verdict: oneOf(verdicts),
  meaning: isText,
  advice: isText,
  reason: isText,
  status: isNumber,
  closeCode: isNumber,
  retryAfterMs: isNumber,
  uptimeMs: isNumber,
  framesReceived: isNumber,
  endedAt: isNumber,
};

/** The public words for a failure that has none. */
const unknown = { meaning: 'The feed failed.', advice: 'See the log of the server.' };
