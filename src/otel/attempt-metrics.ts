import type { Attributes, Span, SpanKind, SpanStatusCode, Tracer } from '@opentelemetry/api';
import type { ClusterLifecycleEvent } from '../protocol/event.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Instruments } from './instruments.js';

/** Measures the attempts of one subscription: their duration, and a span for each. */
export interface AttemptMetrics {
  readonly event: (event: ClusterLifecycleEvent) => void;
  /** Ends the attempt in progress, which the subscriber ended. */
  readonly end: () => void;
}

/**
 * Creates an {@link AttemptMetrics}.
 *
 * A measurement ends when the connection is open, not with the stream: a span is exported when it ends, and a stream can last for weeks.
 * The span of the next attempt names the failure that ended the stream.
 */
export const measureAttempts = (
  { attemptDuration }: Instruments,
  tracer: Tracer | undefined,
  attributesOf: () => Attributes,
): AttemptMetrics => {
  let running: { readonly from: number; readonly span: Span | undefined } | undefined;
  let attempts = 0;
  let previous: TradeFeedError | undefined;

  const begin = (at: number): void => {
    running?.span?.end(at);
    attempts += 1;
    const attributes = {
      ...attributesOf(),
      'trade_feed.attempt': attempts,
      ...(previous && { 'trade_feed.previous.error.type': previous.code }),
    };
    // The request in which the application subscribed ends long before the feed does, so it is not the parent.
    const span = tracer?.startSpan('trade_feed.attempt', { startTime: at, kind: client, root: true, attributes });
    running = { from: at, span };
  };
  const finish = (at: number, failure?: TradeFeedError): void => {
    previous = failure;
    if (running === undefined) return;
    const { from, span } = running;
    running = undefined;
    const errorType = failure && { 'error.type': failure.code };
    attemptDuration.record(Math.max(0, at - from) / 1_000, { ...attributesOf(), ...errorType });
    if (failure) span?.setAttributes(failureAttributes(failure)).setStatus({ code: error, message: failure.message });
    span?.end(at);
  };

  return {
    event: (event) => {
      switch (event.type) {
        case 'ticket-requested':
          return begin(event.at);
        case 'ticket-issued':
          return void running?.span?.addEvent('ticket-issued', undefined, event.at);
        case 'opened':
          return finish(event.at);
        case 'disconnected':
        case 'stopped':
          return finish(event.at, event.failure);
        case 'reconnecting':
        case 'gap':
        case 'owner-changed':
        case 'watermark':
          return undefined;
      }
    },
    end: () => {
      running?.span?.end();
      running = undefined;
    },
  };
};

// The values of the enums: with their types only, this package needs no code of the API.
const client: SpanKind.CLIENT = 2;
const error: SpanStatusCode.ERROR = 2;

const failureAttributes = ({ code, stage, status }: TradeFeedError): Attributes => ({
  'error.type': code,
  'trade_feed.stage': stage,
  ...(status !== undefined && { 'http.response.status_code': status }),
});
