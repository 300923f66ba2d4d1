import { isNumber, isText } from '../type-guards.js';
import { type FailureCode, type Stage, stages, type Verdict, verdicts } from './failure-code.js';

/**
 * The facts observed when an attempt ended. An HTTP status or a close code is enough. A failure that the client itself detects (a timeout,
 * an invalid frame) has neither: set its `code`.
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
  /** The wait that the service demands in `Retry-After`, in ms. */
  readonly retryAfterMs?: number | undefined;
  /** How long the connection had been open, in ms; 0 when it never opened. */
  readonly uptimeMs?: number | undefined;
  /** The number of frames that this connection had delivered. */
  readonly framesReceived?: number | undefined;
  /** When the attempt ended, in epoch ms; for a stalled connection, when the last bytes arrived. */
  readonly endedAt?: number | undefined;
  /** More text for the message, for example the name of an invalid field. */
  readonly detail?: string | undefined;
  readonly cause?: unknown;
}

/** The fields of a {@link TradeFeedError}. */
export interface FailureFields extends FailureFacts {
  readonly code: FailureCode;
  readonly verdict: Verdict;
  /** See {@link TradeFeedError.summary}. */
  readonly summary: string;
  /** See {@link TradeFeedError.detail}. */
  readonly detail?: string | undefined;
  /** See {@link TradeFeedError.option}. */
  readonly option?: string | undefined;
  readonly advice: string;
  /** A summary without private text. If it is set, {@link TradeFeedError.toPublic} keeps both `meaning` and `advice`. */
  readonly meaning?: string | undefined;
  readonly previous?: TradeFeedError | undefined;
}

/**
 * The failure that ended an attempt, and the only error that the feed itself raises.
 *
 * It contains everything that a reconnect policy needs, and no secret. {@link createTradeFeedError} creates one from observed facts.
 *
 * The message consists of `summary`, `detail` in parentheses, and `advice`.
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
  /** The stage of the attempt. */
  declare readonly stage: Stage;
  /** What the reconnect policy does about it. */
  declare readonly verdict: Verdict;
  /** What happened, in one sentence. JSON and `util.inspect` do not show this field: it is part of the message. */
  declare readonly summary: string;
  /** The observed details, for example `HTTP 401`. Missing if there are none. Not in JSON: it is part of the message. */
  declare readonly detail?: string;
  /** The name of the wrong option, if the code is `invalid-options`; `detail` then continues with "must be …". Not in JSON. */
  declare readonly option?: string;
  /** What to do about it, in one sentence for a person. */
  declare readonly advice: string;
  /** What happened, in a fixed text of the library without observed details. Missing when the failure is not from its tables. */
  declare readonly meaning?: string;
  /** How long the connection had been open, in ms; 0 when it never opened. */
  declare readonly uptimeMs: number;
  /** The number of frames that this connection had delivered. */
  declare readonly framesReceived: number;
  /** When the attempt ended, in epoch ms; for a stalled connection, when the last bytes arrived. */
  declare readonly endedAt: number;
  /** HTTP status, when there was one. */
  declare readonly status?: number;
  /** WebSocket close code, when there was one. */
  declare readonly closeCode?: number;
  /** Close reason, when there was a close code. */
  declare readonly reason?: string;
  /** The wait that the service demands in `Retry-After`, in ms. */
  declare readonly retryAfterMs?: number;
  /** The failure before this one, if the attempt was a reconnect. It has no `previous` itself. */
  declare readonly previous?: TradeFeedError;

  constructor(fields: FailureFields) {
    super(messageOf(fields));
    // V8 formats a stack when it is first read. Until then it keeps objects of the call stack alive, for example a closed socket.
    this.stack = String(this.stack);
    const known = Object.entries(fields).filter(([, value]) => value !== undefined);
    Object.assign(this, { uptimeMs: 0, framesReceived: 0, endedAt: Date.now() }, Object.fromEntries(known));
    for (const name of hidden) if (name in this) Object.defineProperty(this, name, { enumerable: false });
  }

  /**
   * Returns a copy that may leave the server: for a page, a health check, a public status.
   *
   * Keeps code, stage, verdict, status, close code, times and counts. The message consists only of `meaning` and `advice`. Texts from outside
   * are removed: detail, close reason, cause and stack. `previous` is converted in the same way. The `previous` of a public
   * `retries-exhausted` is the last failure, which is the cause of the original. A failure without a `meaning` gets a fixed text. Log the
   * original failure on the server.
   */
  toPublic(): TradeFeedError {
    const { meaning, advice } = this.meaning ? this : withoutMeaning;
    const before =
      this.cause instanceof TradeFeedError ? copyFailure(this.cause, { previous: undefined }) : this.previous;
    const known = knownFields({ ...(this as object), meaning, advice, reason: undefined });
    const shown = new TradeFeedError({ ...known, summary: meaning as string, previous: before?.toPublic() });
    shown.stack = String(shown);
    return shown;
  }

  /** Returns the error as plain data, without its cause and stack. */
  toJSON(): Record<string, unknown> {
    return { ...(this as object), name: this.name, message: this.message };
  }
}

/** The fields of a failure that a copy can change. */
export type FailureChanges = Partial<Omit<FailureFields, 'code' | 'summary' | 'detail' | 'option' | 'cause'>>;

/**
 * Returns a copy of a failure with some fields changed. The copy keeps the cause, and the stack of the original.
 *
 * New advice also changes the message. It may contain private text, so the copy then has no `meaning`, and `toPublic()` does not keep the
 * advice. If `changes` contains a `meaning`, both are public.
 */
export const copyFailure = (failure: TradeFeedError, changes: FailureChanges): TradeFeedError => {
  const { summary, detail, option, cause, message, stack } = failure;
  const isSameAdvice = changes.advice === undefined;
  const meaning = isSameAdvice ? failure.meaning : undefined;
  const copy = new TradeFeedError({ ...failure, summary, detail, option, cause, meaning, ...changes });
  if (isSameAdvice) copy.message = message;
  copy.stack = String(stack).replace(message, () => copy.message);
  return copy;
};

/** The fields that {@link knownFields} checks. */
type KnownFields = Omit<FailureFields, 'summary' | 'detail' | 'option' | 'previous' | 'cause'>;

/** Returns the fields of a failure that have the right type. Omits `previous` and the fields that are not enumerable. */
export const knownFields = (fields: Readonly<Record<string, unknown>>): KnownFields => {
  const valid = Object.entries(fieldChecks).filter(([name, isValid]) => isValid(fields[name]));
  return Object.fromEntries(valid.map(([name]) => [name, fields[name]])) as unknown as KnownFields;
};

const oneOf = (words: readonly unknown[]) => words.includes.bind(words);

const fieldChecks: Readonly<Record<keyof KnownFields, (value: unknown) => boolean>> = {
  // A newer version may know more codes than this one.
  code: isText,
  stage: oneOf(stages),
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

const messageOf = ({ summary, detail, option, advice }: FailureFields): string => {
  const observed = option === undefined ? detail : `\`${option}\` ${detail}`;
  return `${observed ? `${summary.replace(/\.$/, '')} (${observed}).` : summary} ${advice}`;
};

/** The fields that are not enumerable: `cause`, as in every Error, and the parts of the message. */
const hidden: readonly string[] = ['cause', 'summary', 'detail', 'option'];

/** The public texts of a failure that has no `meaning`. */
const withoutMeaning = { meaning: 'The feed failed.', advice: 'See the log of the server.' };
