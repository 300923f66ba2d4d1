import { isError, isNumber, isText, isTime } from '../type-guards.js';
import {
  type CertificateProblem,
  type FailureCode,
  failurePage,
  invalidOptions,
  type Meaning,
  relayReports,
  type Stage,
  stages,
  type Verdict,
  verdicts,
} from './meanings.js';

/**
 * What was observed when an attempt ended. An HTTP status or a close code is enough. If the client itself detected the
 * failure (a timeout, an invalid frame), there's neither: set its `code`.
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
  /** What's wrong with the server's certificate, if another CA can't help. */
  readonly certificate?: CertificateProblem | undefined;
  /** Whether a connection of this subscription has opened before. */
  readonly hasOpened?: boolean | undefined;
  /** The wait that the service demands in `Retry-After`, in ms. */
  readonly retryAfterMs?: number | undefined;
  /** How long the connection had been open, in ms; 0 when it never opened. */
  readonly uptimeMs?: number | undefined;
  /** The number of frames that this connection had delivered. */
  readonly framesReceived?: number | undefined;
  /** When the attempt ended, in epoch ms; for a stalled connection, when the last bytes arrived. */
  readonly endedAt?: number | undefined;
  /** More text for the message, such as the name of an invalid field. */
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
  /**
   * A summary without private text. If it's set, {@link TradeFeedError.toPublic} keeps both `meaning` and `advice`.
   */
  readonly meaning?: string | undefined;
  readonly previous?: TradeFeedError | undefined;
}

/**
 * The failure that ended an attempt, and the only error the feed itself raises.
 *
 * It holds everything a reconnect policy needs, and no secret. {@link createTradeFeedError} creates one from observed
 * facts.
 *
 * The message is `summary`, `detail` in parentheses, `advice`, and the address of the page about its code.
 *
 * @example
 * ```ts
 * import { TradeFeedError, tradeFeed$ } from 'rx-trade-feed';
 *
 * tradeFeed$('market').subscribe({
 *   error: (error) => {
 *     if (error instanceof TradeFeedError && error.code === 'connection-replaced')
 *       console.error(error.advice);
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
  /** What happened, in one sentence. JSON and `util.inspect` don't show this field, because the message contains it. */
  declare readonly summary: string;
  /**
   * The observed details, such as `HTTP 401`. Missing if there are none. Not in JSON, because the message contains it.
   */
  declare readonly detail?: string;
  /**
   * The name of the wrong option, if the code is `invalid-options`; `detail` continues the sentence, such as "must be
   * …". Not in JSON.
   */
  declare readonly option?: string;
  /** What to do about it, in one sentence for a person. */
  declare readonly advice: string;
  /**
   * What happened, in a fixed text without observed details. Missing if the failure isn't from the library's tables.
   */
  declare readonly meaning?: string;
  /** How long the connection had been open, in ms; 0 when it never opened. */
  declare readonly uptimeMs: number;
  /** The number of frames that this connection had delivered. */
  declare readonly framesReceived: number;
  /** When the attempt ended, in epoch ms; for a stalled connection, when the last bytes arrived. */
  declare readonly endedAt: number;
  /** HTTP status, if there was one. */
  declare readonly status?: number;
  /** WebSocket close code, if there was one. */
  declare readonly closeCode?: number;
  /** Close reason, if there was a close code. */
  declare readonly reason?: string;
  /** What's wrong with the server's certificate, if another CA can't help. */
  declare readonly certificate?: CertificateProblem;
  /** `true` if a connection of this subscription has opened before, and the verdict depends on it. */
  declare readonly hasOpened?: boolean;
  /** The wait that the service demands in `Retry-After`, in ms. */
  declare readonly retryAfterMs?: number;
  /** The failure before this one, if the attempt was a reconnect. Has no `previous` itself. */
  declare readonly previous?: TradeFeedError;

  constructor(fields: FailureFields) {
    super(`${observedIn(fields)} ${fields.advice} See ${failurePage(fields.code)}`);
    // V8 formats a stack on first access. Until then it keeps objects of the call stack alive, such as a closed socket.
    this.stack = String(this.stack);
    const known = Object.entries(fields).filter(
      // Other times are computed from `endedAt`, so an invalid one is replaced by the current time.
      ([name, value]) => value !== undefined && (name !== 'endedAt' || isTime(value)),
    );
    Object.assign(this, { uptimeMs: 0, framesReceived: 0, endedAt: Date.now() }, Object.fromEntries(known));
    for (const name of hidden) if (name in this) Object.defineProperty(this, name, { enumerable: false });
  }

  /**
   * Returns a copy that may leave the server: for a page, a health check, a public status.
   *
   * Keeps code, stage, verdict, status, close code, times and counts. The message is just `meaning` and `advice`. Drops
   * text from outside (detail, close reason, cause and stack), and does the same to `previous`. For
   * `retries-exhausted`, `previous` is the last failure, which the original has as its cause. A failure without a
   * `meaning` gets a fixed text. Log the original failure on the server.
   */
  toPublic(): TradeFeedError {
    return publicCopy(this);
  }

  /** Returns the error as plain data, without its cause and stack. */
  toJSON(): Record<string, unknown> {
    return { ...(this as object), name: this.name, message: this.message };
  }
}

/**
 * Returns whether an error is a {@link TradeFeedError}, even if another copy of this library (in a bundle, in a worker)
 * created it.
 *
 * Anything else that reaches the error channel was thrown by your own operator or callback: print it whole.
 *
 * @example
 * ```ts
 * import { isTradeFeedError, tradeFeed$ } from 'rx-trade-feed';
 *
 * tradeFeed$('market').subscribe({
 *   error: (error) => {
 *     console.error(isTradeFeedError(error) ? error.message : error);
 *     process.exitCode = 1;
 *   },
 * });
 * ```
 */
export const isTradeFeedError = (error: unknown): error is TradeFeedError =>
  isError(error) &&
  error.name === 'TradeFeedError' &&
  isText((error as Partial<TradeFeedError>).code) &&
  verdicts.includes((error as Partial<TradeFeedError>).verdict as Verdict);

/**
 * Copies a failure with its cause and stack. New advice may be private, so it drops `meaning` unless `changes` has one.
 */
export const copyFailure = (
  failure: TradeFeedError,
  changes: Partial<Omit<FailureFields, 'code' | 'summary' | 'detail' | 'option' | 'cause'>>,
): TradeFeedError => {
  const { summary, detail, option, cause, message, stack } = failure;
  const isSameAdvice = changes.advice === undefined;
  const meaning = isSameAdvice ? failure.meaning : undefined;
  const copy = new TradeFeedError({ ...failure, summary, detail, option, cause, meaning, ...changes });
  if (isSameAdvice) copy.message = message;
  copy.stack = String(stack).replace(message, () => copy.message);
  return copy;
};

// Outside the class: bundlers rename a class that refers to itself, and stack traces would show that name.
const publicCopy = (failure: TradeFeedError): TradeFeedError => {
  const { cause, previous } = failure;
  const { meaning, advice } = failure.meaning ? failure : withoutMeaning;
  const before = cause instanceof TradeFeedError ? copyFailure(cause, { previous: undefined }) : previous;
  const known = knownFields({ ...(failure as object), meaning, advice, reason: undefined });
  const shown = new TradeFeedError({ ...known, summary: meaning as string, previous: before?.toPublic() });
  // A page shows this text to people who can't open the documentation of the server.
  shown.message = `${meaning} ${advice}`;
  shown.stack = String(shown);
  return shown;
};

const withoutMeaning = { meaning: 'The feed failed.', advice: "See the server's log." };

type KnownFields = Omit<FailureFields, 'summary' | 'detail' | 'option' | 'previous' | 'cause'>;

/** Returns the fields of the right type, except `previous` and those that aren't enumerable. */
const knownFields = (fields: Readonly<Record<string, unknown>>): KnownFields => {
  const valid = Object.entries(fieldChecks).filter(([name, isValid]) => isValid(fields[name]));
  return Object.fromEntries(valid.map(([name]) => [name, fields[name]])) as unknown as KnownFields;
};

const fieldChecks: Readonly<Record<keyof KnownFields, (value: unknown) => boolean>> = {
  // A newer version may have more codes.
  code: isText,
  stage: (value) => stages.includes(value as Stage),
  verdict: (value) => verdicts.includes(value as Verdict),
  meaning: isText,
  advice: isText,
  reason: isText,
  status: isNumber,
  closeCode: isNumber,
  certificate: isText,
  hasOpened: Boolean,
  retryAfterMs: isNumber,
  uptimeMs: isNumber,
  framesReceived: isNumber,
  endedAt: isTime,
};

/** Returns only what happened: the message without its advice and page. */
export const withoutAdvice = ({ message, advice }: Pick<TradeFeedError, 'message' | 'advice'>): string => {
  const end = message.lastIndexOf(` ${advice}`);
  return advice === '' || end === -1 ? message : message.slice(0, end);
};

const observedIn = ({ summary, detail, option }: FailureFields): string => {
  if (!detail) return summary;
  return option === undefined
    ? `${summary.replace(/\.$/, '')} (${detail}).`
    : `Invalid option: \`${option}\` ${detail}.`.replace('?.', '?');
};

/** Fields that aren't enumerable: `cause`, as in every Error, and the parts of the message. */
const hidden: readonly string[] = ['cause', 'summary', 'detail', 'option'];

/**
 * Reads a failure as plain data. Its `toPublic()` keeps `meaning` and `advice`, because the same writer wrote the
 * payloads. `shiftMs`: see `readEventLine`.
 */
export const readFailure = (value: unknown, shiftMs = 0): TradeFeedError => {
  const fields = Object(value) as Readonly<Record<string, unknown>>;
  const known = knownFields(fields);
  const { code, stage, verdict, advice, endedAt } = known;
  const { message, previous } = fields;
  checkFields([message, code, stage, verdict, advice].every(isText), 'failure');
  const failure = new TradeFeedError({
    ...known,
    summary: withoutAdvice({ message: message as string, advice }),
    endedAt: endedAt === undefined ? undefined : endedAt + shiftMs,
    previous: previous === undefined ? undefined : readFailure(previous, shiftMs),
  });
  // Another version may have composed the message differently.
  failure.message = message as string;
  return failure;
};

/** Checks fields from another process or a file. The error names the kind of data but quotes none of it. */
export const checkFields: (isValid: boolean, what: string) => asserts isValid = (isValid, what) => {
  if (!isValid) throw new TypeError(`a field of the ${what} is missing or wrong`);
};

/** Creates a failure from a row of a table and the observed facts: the one place that does. */
export const createFailure = (
  { code, verdict, meaning, advice }: Meaning,
  facts: FailureFacts & Pick<FailureFields, 'option' | 'previous'>,
): TradeFeedError => {
  const detail = joinDetails(facts.status !== undefined && `HTTP ${facts.status}`, facts.detail);
  return new TradeFeedError({ ...facts, code, verdict, summary: meaning, meaning, advice, detail });
};

export const joinDetails = (...parts: readonly (string | false | undefined)[]): string | undefined =>
  parts.filter(Boolean).join(', ') || undefined;

export const matches = (pattern: number | string | undefined, value: number | undefined): boolean =>
  pattern === value || (value !== undefined && (pattern === 'other' || pattern === `${Math.floor(value / 100)}xx`));

/** Turns the feed's error into a failure. An error of the app becomes the cause of `relay-source-failed`. */
export const failureOf = (error: unknown): TradeFeedError =>
  error instanceof TradeFeedError ? error : createFailure(relayReports.sourceFailed, { stage: 'stream', cause: error });

/** Returns the feed's error for what an option threw: a failure with the verdict `stop`, or anything else unchanged. */
export const thrownByOption = (option: string, thrown: unknown): unknown =>
  // With any other verdict the feed would reconnect, and might run into the same exception.
  thrown instanceof TradeFeedError
    ? copyFailure(thrown, { verdict: 'stop', advice: `Your option \`${option}\` threw this.`, meaning: thrown.meaning })
    : thrown;

export interface ClassifyOption {
  readonly classify?: ((failure: TradeFeedError, verdict: Verdict) => Verdict) | undefined;
}

/** Applies the option `classify` to a failure. If it throws, returns what `thrownByOption` makes of the exception. */
export const applyClassify = ({ classify }: ClassifyOption, error: TradeFeedError): unknown => {
  if (classify === undefined) return error;
  try {
    const { verdict: before, meaning } = error;
    const verdict = classify(error, before);
    if (verdict === before) return error;
    const detail = `must be a function that returns ${verdicts.join(', ')}`;
    if (!verdicts.includes(verdict))
      throw createFailure(invalidOptions, { stage: 'ticket', option: 'classify', detail });
    const advice = `Your option \`classify\` changed the verdict from ${before} to ${verdict}.`;
    return copyFailure(error, { verdict, advice, meaning });
  } catch (thrown) {
    return thrownByOption('classify', thrown);
  }
};
