import { from, map, Subscription } from 'rxjs';
import { feeds } from '../../protocol/feed.js';
import type { Feed } from '../../protocol/feed.js';
import type { ServiceSources } from '../options/service-options.js';
import type { Tell } from '../service/service-event.js';
import { isPayload, type Payload } from './payload.js';

/** Subscribes to each source once; its end is told and ends nothing else. Unsubscribe to stop them all. */
export const runSources = (
  sources: ServiceSources,
  push: (feed: Feed, payload: Payload) => void,
  tell: Tell,
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
          error: (error: unknown) => tell({ type: 'source-ended', feed, error }),
          complete: () => tell({ type: 'source-ended', feed, error: undefined }),
        }),
    );
  }
  return running;
};

/** Throws a TypeError unless a value can be pushed. */
export const checkPayload = (value: unknown): Payload => {
  if (isPayload(value)) return value;
  throw new TypeError('A payload must be a string or a Uint8Array.');
};
