// Compile-only: `tsc --noEmit` is the test. `@ts-expect-error` marks code that must not compile; an unused mark is an error.
import { type FeedEvent, type Frame, type TradeFeedError, tradeFeedEvents$, type Verdict } from 'rx-trade-feed';
import { filter, map, type Observable } from 'rxjs';

export const describe = (event: FeedEvent): string | number => {
  switch (event.type) {
    case 'ticket-requested':
      return event.feed satisfies 'market' | 'raw';
    case 'ticket-issued':
      return event.expiresAt satisfies string;
    case 'opened':
      return event.connection satisfies number;
    case 'frame':
      return (event satisfies Frame).data.length;
    case 'disconnected':
      return (event.failure satisfies TradeFeedError).code;
    case 'reconnecting':
      return event.delayMs + event.attempt + (event.verdict satisfies Verdict).length;
    case 'gap':
      return event.to - event.from - event.durationMs + (event.failure satisfies TradeFeedError).uptimeMs;
    case 'stopped':
      return (event.failure satisfies TradeFeedError).code;
    case 'watermark':
      return event.at satisfies number;
    default:
      // `never` if all event types are handled.
      return event satisfies never;
  }
};

export const frames$: Observable<Buffer> = tradeFeedEvents$('market').pipe(
  filter((event) => event.type === 'frame'),
  map((frame) => frame.data),
);

declare const event: FeedEvent;

// @ts-expect-error -- not every event has data: narrow by `type` first
export const unnarrowed = event.data as unknown;

// @ts-expect-error -- unknown event type
export const unknownType = event.type === 'closed';

if (event.type === 'ticket-issued') {
  // @ts-expect-error -- the event does not contain the ticket
  event satisfies { ticket: unknown };
  // @ts-expect-error -- the fields of an event are readonly
  event.at = 0;
}
