import { type Channel, channel, tracingChannel } from 'node:diagnostics_channel';
import { debuglog } from 'node:util';
import { noop } from 'rxjs';
import { FeedWatch } from '../operators/items/feed-watch.js';
import {
  eventRecords,
  type LogEntry,
  type LoggableEvent,
  waitingFor,
  waitingText,
  waitMs,
  waitsFor,
} from '../protocol/event-record.js';
import type { ClusterEvent, Disconnected, Gap, LifecycleEvent, Opened, Stopped } from '../protocol/event.js';
import type { Stage } from '../protocol/failures/meanings.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { failureIn, type FeedState, noFeed } from '../protocol/feed-state.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { printable } from '../protocol/printable.js';

export interface Observer {
  /** Receives each lifecycle event and the state after it. */
  readonly event: (event: LoggableEvent, state: FeedState) => void;
  readonly end: () => void;
}

/**
 * Serves the `NODE_DEBUG` log, the channels and the warning. Only the log needs frames, to notice that none arrive.
 *
 * @param show - writes the log and publishes on the channels
 */
export const observeFeed = (origin: FeedOrigin, warns: boolean, show = showEvents(origin)) => {
  const watch = debug.isOn() ? new FeedWatch(show) : undefined;
  const observers: readonly Observer[] = [
    traceAttempts(origin),
    { event: show, end: noop },
    ...(warns ? [warnWithoutConnection(origin)] : []),
  ];
  return {
    event: (event: LifecycleEvent, state: FeedState): void => {
      // Skips watermarks: a worker sends one with each batch of frames.
      if (event.type === 'watermark') return;
      watch?.event(event);
      for (const each of observers) each.event(event, state);
    },
    /** Receives each frame. Missing if nothing needs frames. */
    frame: watch && ((frame: Frame) => watch.item(frame)),
    end: (): void => {
      watch?.end();
      for (const each of observers) each.end();
    },
  };
};

/** The subscription that a message is about. All its messages contain the same object. */
export interface FeedOrigin {
  readonly feed: Feed;
  /** The service's address, from the options. */
  readonly baseUrl: string;
  /** Where in the program the feed was created: function, file, line and column. */
  readonly where: string;
}

/** What the channels publish: `rx-trade-feed:opened`, `:disconnected`, `:gap`, `:stopped`, `:owner` and `:engine`. */
export interface FeedEventMessage<Event extends PublishedEvent = PublishedEvent> {
  readonly origin: FeedOrigin;
  readonly event: Event;
}

/** The events that have a channel. */
export type PublishedEvent = Opened | Disconnected | Gap | Stopped | ClusterEvent;

/** Writes each entry to the `NODE_DEBUG` log, and publishes it if it has a channel. */
export const showEvents = (origin: FeedOrigin): ((entry: LogEntry) => void) => {
  const [log, publish] = [debugLog(origin), publishEvents(origin)];
  return (entry) => {
    log(entry);
    if (entry.type !== 'waiting') publish(entry);
  };
};

export const publishEvents =
  (origin: FeedOrigin) =>
  (event: LoggableEvent): void => {
    const target = (channels as Partial<Record<LoggableEvent['type'], Channel>>)[event.type];
    if (target?.hasSubscribers) target.publish({ origin, event });
  };

const engine = channel('rx-trade-feed:engine');

const channels: Readonly<Record<PublishedEvent['type'], Channel>> = {
  opened: channel('rx-trade-feed:opened'),
  disconnected: channel('rx-trade-feed:disconnected'),
  gap: channel('rx-trade-feed:gap'),
  stopped: channel('rx-trade-feed:stopped'),
  'owner-changed': channel('rx-trade-feed:owner'),
  'engine-refused': engine,
  'engine-recovered': engine,
};

/**
 * What the tracing channel `rx-trade-feed:attempt` publishes. All five of its channels get the same object for an
 * attempt, and its fields change as the attempt proceeds.
 */
export interface AttemptMessage {
  readonly origin: FeedOrigin;
  /** Counts the attempts of this subscription: 1, 2, … */
  readonly attempt: number;
  /** How far the attempt has got. */
  readonly stage: Stage;
  /** When each stage began, in epoch ms. Later stages are missing. */
  readonly startedAt: { readonly ticket: number; readonly handshake?: number; readonly stream?: number };
  /** When the attempt ended, in epoch ms. Missing while it runs. */
  readonly endedAt?: number;
  /** The failure that ended the attempt. Missing while it runs, and if you unsubscribed. */
  readonly error?: TradeFeedError;
}

/** Traces an attempt if the channel has a subscriber when it begins. `end` ends it without an error. */
export const traceAttempts = (origin: FeedOrigin): Observer => {
  let current: Running | undefined;

  const finish = (endedAt: number, error?: TradeFeedError): void => {
    const ended = current;
    if (ended === undefined) return;
    current = undefined;
    ended.endedAt = endedAt;
    if (error !== undefined) {
      ended.error = error;
      tracing.error.publish(ended);
    }
    tracing.asyncStart.publish(ended);
    tracing.asyncEnd.publish(ended);
  };

  const event = (event: LoggableEvent, { totals }: FeedState): void => {
    if (event.type === 'ticket-requested' && tracing.hasSubscribers) {
      current = { origin, attempt: totals.attempts, stage: 'ticket', startedAt: { ticket: event.at } };
      tracing.start.publish(current);
      tracing.end.publish(current);
    }
    if (event.type === 'disconnected' || event.type === 'stopped') finish(event.at, event.failure);
    if (current === undefined || (event.type !== 'ticket-issued' && event.type !== 'opened')) return;
    current.stage = event.type === 'opened' ? 'stream' : 'handshake';
    current.startedAt[current.stage] = event.at;
  };
  return { event, end: () => finish(Date.now()) };
};

const tracing = tracingChannel<AttemptMessage>('rx-trade-feed:attempt');

type Running = {
  -readonly [Name in keyof AttemptMessage]: Name extends 'startedAt'
    ? { -readonly [Begun in keyof AttemptMessage['startedAt']]: number }
    : AttemptMessage[Name];
};

/** How many attempts fail before the warning. One or two are common while a service restarts. */
const failuresBeforeWarning = 3;

/** Emits one process warning if no connection has opened after three failed attempts, or after 5 s. */
export const warnWithoutConnection = ({ where, baseUrl }: FeedOrigin): Observer => {
  let last = noFeed;
  let isOver = false;
  const warn = (): void => {
    end();
    const waiting = waitingFor(waitsFor(last) ?? 'source', waitMs);
    const { code, message } = failureIn(last) ?? { code: waiting.code, message: waitingText(waiting) };
    const { failuresInRow } = last;
    const attempts = `${failuresInRow} ${failuresInRow === 1 ? 'attempt' : 'attempts'}`;
    const tried = failuresInRow === 0 ? `${waitMs / 1_000} s` : attempts;
    const text =
      `No connection to ${baseUrl} has opened after ${tried} of ${where}. ${code}: ${message} The feed continues to try. ` +
      `NODE_DEBUG=${debugName} prints each event; the option \`warnings: false\` turns this warning off.`;
    process.emitWarning(printable(text), { type: 'TradeFeedWarning', code });
  };
  const timer = setTimeout(warn, waitMs).unref();
  const end = (): void => {
    isOver = true;
    clearTimeout(timer);
  };
  return {
    event: ({ type }, state) => {
      last = state;
      if (type === 'opened' || type === 'stopped') end();
      if (!isOver && type === 'disconnected' && state.failuresInRow === failuresBeforeWarning) warn();
    },
    end,
  };
};

const debugLog = ({ where, baseUrl }: FeedOrigin): ((entry: LogEntry) => void) => {
  const source = printable(`${where}, ${baseUrl}`);
  const record = eventRecords();
  return (entry) => {
    if (debug.isOn()) debug.write(`${source}: ${record(entry).msg}`);
  };
};

const debugName = 'rx-trade-feed';

const log = debuglog(debugName);

export const debug = {
  /** Returns whether `NODE_DEBUG` names this package. */
  isOn: (): boolean => log.enabled,
  /** Writes a line, if the log is on. */
  write: (line: string): void => log('%s', line),
};
