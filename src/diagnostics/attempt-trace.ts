import { tracingChannel } from 'node:diagnostics_channel';
import type { LoggableEvent } from '../protocol/event-record.js';
import type { Stage } from '../protocol/failures/failure-code.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { FeedOrigin } from './feed-origin.js';

/**
 * The message of the tracing channel `rx-trade-feed:attempt`. All five of its channels receive the same object for an attempt, and its fields
 * change as the attempt proceeds.
 */
export interface AttemptMessage {
  readonly origin: FeedOrigin;
  /** The number of the attempt in this subscription: 1, 2, … */
  readonly attempt: number;
  /** The stage that the attempt has reached. */
  readonly stage: Stage;
  /** When each stage began, in epoch ms. A stage that has not begun is missing. */
  readonly startedAt: { readonly ticket: number; readonly handshake?: number; readonly stream?: number };
  /** When the attempt ended, in epoch ms. Missing while it runs. */
  readonly endedAt?: number;
  /** The failure that ended the attempt. Missing while it runs, and if it was ended by unsubscribing. */
  readonly error?: TradeFeedError;
}

/** Publishes the attempts of one subscription. */
export interface AttemptTrace {
  readonly event: (event: LoggableEvent) => void;
  /** Ends the attempt in progress without an error. */
  readonly end: () => void;
}

/** Creates an {@link AttemptTrace}. An attempt is traced if the channel has a subscriber when the attempt begins. */
export const traceAttempts = (origin: FeedOrigin): AttemptTrace => {
  let attempts = 0;
  let current: Running | undefined;

  const begin = (at: number): void => {
    attempts += 1;
    if (!channels.hasSubscribers) return;
    current = { origin, attempt: attempts, stage: 'ticket', startedAt: { ticket: at } };
    channels.start.publish(current);
    channels.end.publish(current);
  };
  const reach = (stage: 'handshake' | 'stream', at: number): void => {
    if (current === undefined) return;
    current.stage = stage;
    current.startedAt[stage] = at;
  };
  const finish = (endedAt: number, error?: TradeFeedError): void => {
    const ended = current;
    if (ended === undefined) return;
    current = undefined;
    ended.endedAt = endedAt;
    if (error !== undefined) {
      ended.error = error;
      channels.error.publish(ended);
    }
    channels.asyncStart.publish(ended);
    channels.asyncEnd.publish(ended);
  };

  return {
    event: (event) => {
      switch (event.type) {
        case 'ticket-requested':
          return begin(event.at);
        case 'ticket-issued':
          return reach('handshake', event.at);
        case 'opened':
          return reach('stream', event.at);
        case 'disconnected':
        case 'stopped':
          return finish(event.at, event.failure);
        case 'reconnecting':
        case 'gap':
        case 'owner-changed':
          return undefined;
      }
    },
    end: () => finish(Date.now()),
  };
};

const channels = tracingChannel<AttemptMessage>('rx-trade-feed:attempt');

type Running = {
  -readonly [Name in keyof AttemptMessage]: Name extends 'startedAt'
    ? { -readonly [Begun in keyof AttemptMessage['startedAt']]: number }
    : AttemptMessage[Name];
};
