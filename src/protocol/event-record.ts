import type { ClusterLifecycleEvent, Disconnected, EngineOperation, Gap, Watermark } from './event.js';
import { type FailureCode, failurePage, type Stage } from './failures/meanings.js';
import { type TradeFeedError, withoutAdvice } from './failures/trade-feed-error.js';
import type { FeedState } from './feed-state.js';
import { printable } from './printable.js';
import { isError } from './type-guards.js';

/** The level of an event in a log. */
export type EventLevel = 'debug' | 'info' | 'warn' | 'error';

export type LoggableEvent = Exclude<ClusterLifecycleEvent, Watermark>;

export type LogEntry = LoggableEvent | Waiting;

/**
 * A lifecycle event for a log, or the note that the feed has been waiting for long.
 *
 * A structured logger such as pino writes its fields; a console prints its text on one line. The fields are those of
 * the event and, next to them, those of its failure. They contain no secret and no frame.
 */
export class EventRecord {
  /** The type of the event; `waiting` if the feed has waited for more than 5 s. */
  declare readonly type: LogEntry['type'];
  /** When the event happened, in epoch ms. For a gap: when it ended. */
  declare readonly at: number;
  /** The text of the record: one line. */
  declare readonly msg: string;

  constructor(event: LogEntry) {
    Object.assign(this, fieldsOf(event), { msg: printable(lines[event.type][1](event as never)) });
    Object.defineProperty(this, inspectCustom, { value: () => this.msg });
  }

  /** Returns the text. */
  toString(): string {
    return this.msg;
  }
}

/** Creates records. A repeated failure loses its advice; the third in a row says how to find the cause. */
export const eventRecords = (): ((entry: LogEntry) => EventRecord) => {
  const advised = new Set<string>();
  let failures = 0;
  return (entry) => {
    if (entry.type === 'opened') failures = 0;
    if (entry.type !== 'disconnected') return new EventRecord(entry);
    failures += 1;
    const { code } = entry.failure;
    const isAdvised = advised.has(code);
    advised.add(code);
    const record = new EventRecord(entry);
    const text = failures === 3 ? thirdFailure : isAdvised ? withoutAdvice : undefined;
    return text === undefined ? record : Object.assign(record, { msg: printable(disconnectedText(entry, text)) });
  };
};

const thirdFailure = (failure: TradeFeedError): string =>
  `${withoutAdvice(failure)} That's three failures in a row: \`npx rx-trade-feed doctor\` finds the cause, or see ${failurePage(failure.code)}`;

/** Says why a connection ended. `text` returns what to say about the failure. */
export const disconnectedText = ({ failure }: Disconnected, text: (failure: TradeFeedError) => string): string =>
  `Disconnected, ${failure.code}: ${text(failure)}`;

export const levelOf = ({ type }: LogEntry): EventLevel => lines[type][0];

// `util.inspect.custom`, which browsers don't have.
const inspectCustom = Symbol.for('nodejs.util.inspect.custom');

export const engineTasks: Readonly<Record<EngineOperation, string>> = {
  connect: "reach the cluster's engine",
  read: "read the cluster's key",
  write: "write the cluster's key",
  publish: 'send messages to the other replicas',
  subscribe: 'receive messages from the other replicas',
  request: 'ask the owner of the connection',
  store: "use the store of the cluster's messages",
};

const fieldsOf = (event: LogEntry): object => {
  if (event.type === 'gap') {
    const { type, from, to, durationMs, missed, failure } = event;
    return { type, at: to, from, durationMs, ...(missed !== undefined && { missed }), ...failureFields(failure) };
  }
  if (event.type !== 'disconnected' && event.type !== 'stopped') return event;
  const { type, at, failure } = event;
  return { type, at, ...failureFields(failure), uptimeMs: failure.uptimeMs, framesReceived: failure.framesReceived };
};

const failureFields = ({ code, stage, verdict, status, closeCode, reason }: TradeFeedError): object => ({
  code,
  stage,
  verdict,
  ...(status !== undefined && { status }),
  ...(closeCode !== undefined && { closeCode }),
  ...(reason !== undefined && { reason }),
});

const lines: { readonly [E in LogEntry as E['type']]: readonly [EventLevel, (event: E) => string] } = {
  'ticket-requested': ['debug', ({ feed }) => `Requesting a ticket for ${feed}`],
  'ticket-issued': ['debug', ({ feed }) => `Ticket issued for ${feed}`],
  opened: ['info', ({ feed, connection }) => `Connected to ${feed} (connection ${connection})`],
  disconnected: ['warn', (event) => disconnectedText(event, ({ message }) => message)],
  reconnecting: ['warn', ({ attempt, delayMs }) => `Reconnect ${attempt} in ${delayMs} ms`],
  gap: ['warn', (gap) => `Frames may be missing${gapText(gap)}`],
  'owner-changed': ['info', ({ owner, generation }) => `${owner} owns the connection now (generation ${generation})`],
  'engine-refused': [
    'warn',
    ({ operation, message, advice }) => `Can't ${engineTasks[operation]}: ${message}. ${advice}`,
  ],
  'engine-recovered': [
    'info',
    ({ durationMs }) => `The cluster's engine works again${durationMs > 0 ? `, after ${durationMs} ms` : ''}`,
  ],
  stopped: ['error', ({ failure }) => `Stopped, ${failure.code}: ${failure.message}${causeOf(failure)}`],
  waiting: ['warn', (waiting) => `Waiting${waiting.code ? `, ${waiting.code}` : ''}: ${waitingText(waiting)}`],
};

const gapText = ({ durationMs, from, missed, failure }: Gap): string => {
  const begin = new Date(from).toISOString();
  const frames = missed ? `${missed} frames ` : '';
  if (durationMs > 0) return `: ${frames}${frames && 'in '}${durationMs} ms from ${begin} on`;
  // 0 ms would read as if nothing were missing.
  const { code, meaning = code } = failure;
  const why = code === 'owner-changed' ? 'the connection was handed over' : meaning.replace(/\.$/, '');
  return `${frames && `: ${frames.trim()}`} around ${begin.slice(11, -1)}: ${why}`;
};

// A failure's message contains its cause, unless the cause is an error of the app.
const causeOf = ({ code, cause }: TradeFeedError): string =>
  code === 'relay-source-failed' && (isError(cause) || typeof cause === 'string') ? ` Cause: ${cause}` : '';

/** How long a feed waits before its log, its health and its metrics say so, in ms. */
export const waitMs = 5_000;

export type WaitingFor = 'source' | Stage;

/** Says that the feed has been waiting for long. Not an event: those say what happened. */
export interface Waiting {
  readonly type: 'waiting';
  /** When it was noticed, in epoch ms. */
  readonly at: number;
  /** How long the feed has been waiting, in ms. */
  readonly waitedMs: number;
  /** The stage that got no answer. Missing if the source hasn't emitted an event. */
  readonly stage?: Stage;
  /** The code of the failure this will end in. Missing if the source hasn't emitted an event. */
  readonly code?: FailureCode;
}

export const waitingFor = (what: WaitingFor, waitedMs: number): Waiting => {
  const base = { type: 'waiting', at: Date.now(), waitedMs } as const;
  const [, code] = waits[what];
  return what === 'source' || code === undefined ? base : { ...base, stage: what, code };
};

/** Returns what's going on and what to do, as a fixed text that may leave the server. */
export const waitingText = ({ stage, waitedMs }: Waiting): string =>
  waits[stage ?? 'source'][0].replace('#', String(waitedMs / 1_000));

/** Returns what a feed waits for; `undefined` after a failure, which already says it. */
export const waitsFor = ({ open, events }: FeedState): WaitingFor | undefined => {
  if (open !== undefined) return 'stream';
  if (events.length === 0) return 'source';
  if (events.some(({ type }) => type !== 'ticket-requested' && type !== 'ticket-issued')) return undefined;
  return events.at(-1)?.type === 'ticket-issued' ? 'handshake' : 'ticket';
};

/** What to say after `#` seconds, and the code of the failure that the wait will end in. */
const waits: Readonly<Record<WaitingFor, readonly [text: string, code?: FailureCode]>> = {
  source: [
    'No connection after # s, and no attempt has been reported. ' +
      'Check what the feed waits for: the relay of a page (relay-unreachable), the owner of a cluster.',
  ],
  ticket: [
    'No ticket after # s. Check the network, `baseUrl` and the proxy, ' +
      'or your function `apiKey` (api-key-unavailable). The attempt ends at `ticketTimeoutMs`.',
    'ticket-endpoint-unreachable',
  ],
  handshake: [
    'No answer to the handshake after # s. Check the network and the proxy. ' +
      'The attempt ends at `handshakeTimeoutMs`.',
    'handshake-unreachable',
  ],
  stream: [
    'No frame for # s over an open connection. If the feed is never this quiet, check the network. ' +
      'A connection without any bytes is replaced after `idleTimeoutMs`.',
    'connection-stalled',
  ],
};
