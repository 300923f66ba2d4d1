import { map, type Subscription } from 'rxjs';
import { tradeFeedEvents$, type TradeFeedOptions } from 'rx-trade-feed';
import { keyOf } from '../support/held-service.js';
import { type Lifecycle, readNumbered, type Seen, type Subscribed } from '../support/ten-rules/seen.js';

/** What the consumer does on the next event of a type. */
export interface Reaction {
  readonly on: Lifecycle['type'] | 'frame';
  readonly does: 'unsubscribe' | 'throw in next' | 'throw in an operator' | 'block';
}

/** When to react. The most frequent moment is listed twice. */
export const moments: readonly Reaction['on'][] = [
  ...(['ticket-requested', 'ticket-issued', 'opened', 'gap'] as const),
  ...(['frame', 'frame', 'disconnected', 'reconnecting'] as const),
];

/** What the consumer throws. */
export class OwnError extends Error {
  override readonly name = 'OwnError';
}

/** How long a blocking consumer blocks, in wall clock ms. */
const BLOCK_MS = 15;
const wallMs = performance.now.bind(performance);

/** A subscription with a log and a consumer that can react to events. */
export interface Watched {
  readonly log: Seen[];
  readonly facts: Subscribed;
  readonly options: TradeFeedOptions;
  reaction: Reaction | undefined;
  readonly unsubscribe: () => void;
}

/** Subscribes and logs everything that the feed emits. */
export const watch = (
  subscription: number,
  options: TradeFeedOptions & {
    readonly backoff: { initialDelayMs: number; maxDelayMs: number; stableAfterMs: number };
  },
  earlyMs = 0,
): Watched => {
  const log: Seen[] = [{ what: 'subscribed', at: performance.now() }];
  const { initialDelayMs, maxDelayMs, stableAfterMs } = options.backoff;
  const apiKey = keyOf(subscription);
  const isOwnError = (error: unknown) => error instanceof OwnError;
  const facts: Subscribed = { subscription, apiKey, initialDelayMs, maxDelayMs, stableAfterMs, earlyMs, isOwnError };

  const take = (type: Reaction['on'], ...does: readonly Reaction['does'][]): Reaction['does'] | undefined => {
    const { reaction } = watched;
    if (reaction?.on !== type || !does.includes(reaction.does)) return undefined;
    watched.reaction = undefined;
    return reaction.does;
  };
  let running: Subscription | undefined = undefined;
  const unsubscribe = () => {
    if (log.some(({ what }) => what === 'unsubscribed' || what === 'errored')) return;
    log.push({ what: 'unsubscribed', at: performance.now() });
    running?.unsubscribe();
  };
  const watched: Watched = { log, facts, options, reaction: undefined, unsubscribe };

  const feed$ = tradeFeedEvents$('market', { ...options, apiKey }).pipe(
    map((event) => {
      if (take(event.type, 'throw in an operator')) throw new OwnError('thrown in an operator');
      return event;
    }),
  );
  running = feed$.subscribe({
    next: (event) => {
      const at = performance.now();
      if (event.type === 'frame')
        log.push({ what: 'frame', at, connection: event.connection, payload: readNumbered(event.text()) });
      else log.push({ what: 'event', at, event });
      const does = take(event.type, 'unsubscribe', 'throw in next', 'block');
      if (does === 'unsubscribe') unsubscribe();
      if (does === 'throw in next') throw new OwnError('thrown in next');
      if (does === 'block') for (const end = wallMs() + BLOCK_MS; wallMs() < end;);
    },
    error: (error: unknown) => log.push({ what: 'errored', at: performance.now(), error }),
  });
  // The consumer may have unsubscribed before `subscribe` returned.
  if (log.some(({ what }) => what === 'unsubscribed')) running.unsubscribe();
  return watched;
};
