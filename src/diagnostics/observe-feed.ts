import type { LifecycleEvent } from '../protocol/event.js';
import type { LoggableEvent } from '../protocol/event-record.js';
import { failureOf } from '../protocol/failures/failure-of.js';
import { addGap, noEvents } from '../reconnect/with-gaps.js';
import { traceAttempts } from './attempt-trace.js';
import { debugLog } from './debug-log.js';
import type { FeedOrigin } from './feed-origin.js';
import { publishEvents } from './lifecycle-channels.js';
import { warnWithoutConnection } from './warn-without-connection.js';

/** Receives what happens in one subscription of a feed, except its frames. */
export interface FeedObserver {
  /** Receives a lifecycle event of an attempt. */
  readonly event: (event: LifecycleEvent) => void;
  /** Receives the error that stops the feed. */
  readonly stop: (error: unknown) => void;
  /** Ends the observation, with the subscription. */
  readonly end: () => void;
}

/**
 * Creates the observer of a subscription: the log of `NODE_DEBUG`, the channels of `node:diagnostics_channel`, and the warning.
 *
 * A feed without these listeners calls it only for lifecycle events, never for a frame.
 *
 * @param warns - whether the process is warned when no connection opens
 */
export const observeFeed = (origin: FeedOrigin, warns: boolean): FeedObserver => {
  const trace = traceAttempts(origin);
  const listeners = [
    debugLog(origin),
    trace.event,
    publishEvents(origin),
    ...(warns ? [warnWithoutConnection(origin)] : []),
  ];
  const notify = (event: LoggableEvent): void => {
    for (const listener of listeners) listener(event);
  };
  let last = noEvents;
  return {
    event: (event) => {
      // A worker sends a watermark with each batch of frames.
      if (event.type === 'watermark') return;
      last = addGap(last, event);
      (last.events as readonly LoggableEvent[]).forEach(notify);
    },
    stop: (error) => notify({ type: 'stopped', at: Date.now(), failure: failureOf(error) }),
    end: trace.end,
  };
};
