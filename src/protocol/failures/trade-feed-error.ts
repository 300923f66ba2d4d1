import { isNumber, isText } from '../type-guards.js';
import { type FailureCode, type Stage, stages, type Verdict, verdicts } from './failure-code.js';

/**
 * What was observed when an attempt ended. An HTTP status or a close code is enough. A failure that the client itself detects (a timeout, a
 * bad frame) has neither, and is named by its `code`.
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
  /** More words for the message: the bad field, for example. */
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
  /** A summary that anybody may read. It makes `advice` public, too: {@link TradeFeedError.toPublic} keeps both. */
  readonly meaning?: string | undefined;
  readonly previous?: TradeFeedError | undefined;
}

/**
 * The failure that ended an attempt, and the only error that the feed itself raises.
 *
 * It contains everything that a reconnect policy needs, and no secret. {@link createTradeFeedError} creates one from what was observed.
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
  /** What happened, in one sentence. Not in JSON, and not printed separately: it is part of the message. */
  declare readonly summary: string;
  /** What was observed, for example `HTTP 401`. Missing when there is nothing more to report. Not in JSON: it is part of the message. */
  declare readonly detail?: string;
  /** The name of the wrong option, if the code is `invalid-options`; `detail` then continues with "must be …". Not in JSON. */
  declare readonly option?: string;
  /** What to do about it, in one sentence for a person. */
  declare readonly advice: string;
  /** What happened, in the fixed words of the library, without what was observed. Missing when the failure does not come from its tables. */
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
  /** The failure before this one, when a reconnect led here. One link: it has no `previous` itself. */
  declare readonly previous?: TradeFeedError;

  constructor(fields: FailureFields) {
    super(messageOf(fields));
    // Until it is read, a stack keeps every object alive that was on it: a closed socket, the failure before, and so on.
    this.stack = String(this.stack);
    const known = Object.entries(fields).filter(([, value]) => value !== undefined);
    Object.assign(this, { uptimeMs: 0, framesReceived: 0, endedAt: Date.now() }, Object.fromEntries(known));
    for (const name of hidden) if (name in this) Object.defineProperty(this, name, { enumerable: false });
  }

  /**
   * Returns the failure that may leave the server: for a page, a health answer, a public status.
   *
   * Keeps code, stage, verdict, status, close code, times and counts. The message consists of `meaning` and `advice` alone. Everything that was
   * observed or thrown is removed: detail, close reason, cause and stack. The same holds for `previous`. The `previous` of a public
   * `retries-exhausted` is the last failure, which is the cause of the original. A failure without a `meaning` gets a fixed text. Log the failure
   * itself on the server.
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
 * New advice replaces the old one in the message. It may contain private text, so the copy has no `meaning` then, unless `changes` contains
 * one: both are public in this case.
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

/** The checked fields of a failure from elsewhere, without its texts. */
type KnownFields = Omit<FailureFields, 'summary' | 'detail' | 'option' | 'previous' | 'cause'>;

/** Returns the fields of a failure that have the right type, without those that are not enumerable and without `previous`. */
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

/** The fields that JSON and listings do not show: `cause`, as in every Error, and the parts of the message. */
const hidden: readonly string[] = ['cause', 'summary', 'detail', 'option'];

/** The public texts of a failure that has no `meaning`. */
const withoutMeaning = { meaning: 'The feed failed.', advice: 'See the log of the server.' };
