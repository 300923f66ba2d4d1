import { from, map, Subscription } from 'rxjs';
import { feeds } from '../../protocol/feed-names.js';
import type { Feed } from '../../protocol/feed.js';
import type { ServiceSources } from '../options/service-options.js';
import type { Payload } from '../connection/encode-frame.js';
import type { EmitServiceEvent } from '../service/service-event.js';

/** Subscribes to each source once. Emits an event when a source ends; the other sources continue. Unsubscribe to stop all sources. */
export const runSources = (
  sources: ServiceSources,
  push: (feed: Feed, payload: Payload) => void,
  emit: EmitServiceEvent,
): Subscription => {
  const running = new Subscription();
  for (const feed of feeds) {
    const source = sources[feed];
    if (source === undefined) continue;
    running.add(
      from(source)
        .pipe(map(checkPayload))
        .subscribe({
          next: (payload) => push(feed, payload),
          error: (error: unknown) => emit({ type: 'source-ended', feed, error }),
          complete: () => emit({ type: 'source-ended', feed, error: undefined }),
        }),
    );
  }
  return running;
};

/** Returns a value that can be pushed; throws a TypeError for any other value. */
export const checkPayload = (value: unknown): Payload => {
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  throw new TypeError('A payload must be a string or a Uint8Array.');
};
