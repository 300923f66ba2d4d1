import { isNumber, isText, isTime } from '../type-guards.js';
import {
  type FailureCode,
  failurePage,
  type Meaning,
  type RelayFailureCode,
  relayMeanings,
  relayReports,
  type Stage,
  stages,
  type Verdict,
  verdicts,
} from './meanings.js';

/**
 * The facts observed when an attempt ended. An HTTP status or a close code is enough. A failure that the client itself
 * detects (a timeout, an invalid frame) has neither: set its `code`.
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
  /**
   * A summary without private text. If it is set, {@link TradeFeedError.toPublic} keeps both `meaning` and `advice`.
   */
  readonly meaning?: string | undefined;
  readonly previous?: TradeFeedError | undefined;
}

/**
 * The failure that ended an attempt, and the only error that the feed itself raises.
 *
 * It contains everything that a reconnect policy needs, and no secret. {@link createTradeFeedError} creates one from
 * observed facts.
 *
 * The message consists of `summary`, `detail` in parentheses, `advice`, and the address of the page about its code.
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
  /**
   * The observed details, for example `HTTP 401`. Missing if there are none. Not in JSON: it is part of the message.
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
   * What happened, in a fixed text of the library without observed details. Missing when the failure is not from its
   * tables.
   */
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
    // V8 formats a stack when it is first read. Until then it keeps objects of the call stack alive, for example a
    // closed socket.
    this.stack = String(this.stack);
    const known = Object.entries(fields).filter(
      // Times are computed from `endedAt`, so a value that is none is replaced by the current time.
      ([name, value]) => value !== undefined && (name !== 'endedAt' || isTime(value)),
    );
    Object.assign(this, { uptimeMs: 0, framesReceived: 0, endedAt: Date.now() }, Object.fromEntries(known));
    for (const name of hidden) if (name in this) Object.defineProperty(this, name, { enumerable: false });
  }

  /**
   * Returns a copy that may leave the server: for a page, a health check, a public status.
   *
   * Keeps code, stage, verdict, status, close code, times and counts. The message consists only of `meaning` and
   * `advice`. Texts from outside are removed: detail, close reason, cause and stack. `previous` is converted in the
   * same way. The `previous` of a public `retries-exhausted` is the last failure, which is the cause of the original. A
   * failure without a `meaning` gets a fixed text. Log the original failure on the server.
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
 * Returns whether an error is a {@link TradeFeedError}, also if another copy of this library (in a bundle, in a worker)
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
  error instanceof Error &&
  error.name === 'TradeFeedError' &&
  isText((error as Partial<TradeFeedError>).code) &&
  verdicts.includes((error as Partial<TradeFeedError>).verdict as Verdict);

/**
 * Keeps the cause and the stack. New advice may be private, so the copy then has no `meaning`, unless `changes` has
 * one.
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

// Outside of the class: a class that names itself gets another name in a bundle, which a stack trace would show.
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

/** The public texts of a failure that has no `meaning`. */
const withoutMeaning = { meaning: 'The feed failed.', advice: "See the server's log." };

type KnownFields = Omit<FailureFields, 'summary' | 'detail' | 'option' | 'previous' | 'cause'>;

/** Returns the fields that have the right type, without `previous` and those that are not enumerable. */
const knownFields = (fields: Readonly<Record<string, unknown>>): KnownFields => {
  const valid = Object.entries(fieldChecks).filter(([name, isValid]) => isValid(fields[name]));
  return Object.fromEntries(valid.map(([name]) => [name, fields[name]])) as unknown as KnownFields;
};

const fieldChecks: Readonly<Record<keyof KnownFields, (value: unknown) => boolean>> = {
  // A newer version may know more codes than this one.
  code: isText,
  stage: (value) => stages.includes(value as Stage),
  verdict: (value) => verdicts.includes(value as Verdict),
  meaning: isText,
  advice: isText,
  reason: isText,
  status: isNumber,
  closeCode: isNumber,
  retryAfterMs: isNumber,
  uptimeMs: isNumber,
  framesReceived: isNumber,
  endedAt: isTime,
};

const messageOf = (fields: FailureFields): string =>
  `${observedIn(fields)} ${fields.advice} See ${failurePage(fields.code)}`;

/** Returns what happened: the message without its advice and page. */
export const withoutAdvice = ({ message, advice }: Pick<TradeFeedError, 'message' | 'advice'>): string => {
  const end = message.lastIndexOf(` ${advice}`);
  return advice === '' || end === -1 ? message : message.slice(0, end);
};

const observedIn = ({ summary, detail, option }: FailureFields): string => {
  if (!detail) return summary;
  return option === undefined
    ? `${summary.replace(/\.$/, '')} (${detail}).`
    : `Invalid option: \`${option}\` ${detail}.`;
};

/** The fields that are not enumerable: `cause`, as in every Error, and the parts of the message. */
const hidden: readonly string[] = ['cause', 'summary', 'detail', 'option'];

/**
 * `toPublic()` of the result keeps `meaning` and `advice`: the same writer wrote the payloads. `shiftMs`: see
 * `readEventLine`.
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
  // The writer may use another version, which composes the message differently.
  failure.message = message as string;
  return failure;
};

/** Checks fields from another process or a file. The error names the kind of data, and quotes nothing of it. */
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

/** Returns the error of a feed as a failure. An error of the application becomes the cause of `relay-source-failed`. */
export const failureOf = (error: unknown): TradeFeedError =>
  error instanceof TradeFeedError ? error : createFailure(relayReports.sourceFailed, { stage: 'stream', cause: error });

/**
 * The facts that a client of a relay observed: an HTTP status, or the code of a failure that the client itself
 * detected.
 */
export interface RelayFailureFacts extends Omit<FailureFacts, 'stage' | 'code' | 'closeCode' | 'reason'> {
  readonly code?: RelayFailureCode | undefined;
}

/**
 * Creates the {@link TradeFeedError} for the facts that a client of a relay observed. The table defines its code,
 * stage, verdict, message and advice.
 *
 * Also useful in tests of your page.
 *
 * @param facts - a status or a code
 * @throws TypeError when no row of the table matches: a client cannot observe this failure
 * @example
 * ```ts
 * import { relayError } from 'rx-trade-feed/browser';
 *
 * relayError({ code: 'relay-lost' }).verdict; // 'backoff'
 * relayError({ status: 401 }).code; // 'relay-refused'
 * ```
 */
export const relayError = (facts: RelayFailureFacts): TradeFeedError => {
  const { code, status } = facts;
  const meaning = relayMeanings.find((each) =>
    code === undefined ? status !== undefined && matches(each.status, status) : each.code === code,
  );
  if (meaning?.stage === undefined) throw new TypeError('Unknown failure.');
  return createFailure(meaning, { ...facts, stage: meaning.stage });
};
