import type { ClusterLifecycleEvent, Watermark } from './event.js';
import type { TradeFeedError } from './failures/trade-feed-error.js';
import { printable } from './printable.js';

/** The level of an event in a log. */
export type EventLevel = 'debug' | 'info' | 'warn' | 'error';

/** The levels of a log, from the least important. */
export const eventLevels: readonly EventLevel[] = ['debug', 'info', 'warn', 'error'];

/** An event that a log shows: every lifecycle event except a watermark. */
export type LoggableEvent = Exclude<ClusterLifecycleEvent, Watermark>;

/**
 * A lifecycle event for a log.
 *
 * A structured logger such as pino writes its fields. A console prints its text on one line. The fields are those of the event, with the fields
 * of its failure next to them. They contain no secret and no frame.
 */
export class EventRecord {
  /** The type of the event. */
  declare readonly type: LoggableEvent['type'];
  /** When the event happened, in epoch ms. For a gap: when it ended. */
  declare readonly at: number;
  /** The text of the record: one line. */
  declare readonly msg: string;

  constructor(event: LoggableEvent) {
    Object.assign(this, fieldsOf(event), { msg: textOf(event) });
    Object.defineProperty(this, inspectCustom, { value: () => this.msg });
  }

  /** Returns the text. */
  toString(): string {
    return this.msg;
  }
}

/** Returns the level of an event in a log. */
export const levelOf = ({ type }: LoggableEvent): EventLevel => levels[type];

// The symbol of `util.inspect.custom`, which a browser does not have.
const inspectCustom = Symbol.for('nodejs.util.inspect.custom');

const levels: Readonly<Record<LoggableEvent['type'], EventLevel>> = {
  'ticket-requested': 'debug',
  'ticket-issued': 'debug',
  opened: 'info',
  disconnected: 'warn',
  reconnecting: 'warn',
  gap: 'warn',
  'owner-changed': 'info',
  stopped: 'error',
};

const fieldsOf = (event: LoggableEvent): object => {
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

const textOf = (event: LoggableEvent): string =>
  printable((texts[event.type] as (event: LoggableEvent) => string)(event));

const texts: { readonly [E in LoggableEvent as E['type']]: (event: E) => string } = {
  'ticket-requested': ({ feed }) => `Requesting a ticket for ${feed}`,
  'ticket-issued': ({ feed }) => `Ticket issued for ${feed}`,
  opened: ({ feed, connection }) => `Connected to ${feed} (connection ${connection})`,
  disconnected: ({ failure }) => `Disconnected, ${failure.code}: ${failure.message}`,
  reconnecting: ({ attempt, delayMs }) => `Reconnect ${attempt} in ${delayMs} ms`,
  gap: ({ durationMs, from, missed }) =>
    `Frames may be missing: ${missed === undefined ? '' : `${missed} frames in `}${durationMs} ms from ${new Date(from).toISOString()} on`,
  'owner-changed': ({ owner, generation }) => `${owner} owns the connection now (generation ${generation})`,
  stopped: ({ failure }) => `Stopped, ${failure.code}: ${failure.message}`,
};
