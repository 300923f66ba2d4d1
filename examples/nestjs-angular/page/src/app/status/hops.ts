import { type Failure, isOfPage } from '../feed/failure';
import type { FeedState } from '../feed/feed-stop';

/** The state of a link. */
export type LinkState = 'open' | 'trying' | 'broken' | 'unknown';

/** The links of a frame: from the service to the relay, and from the relay to this page. */
export interface Hops {
  readonly service: LinkState;
  readonly page: LinkState;
}

/** Returns the state of both links. A failure between the relay and the page has a code that begins with `relay-`. */
export const hopsOf = (state: FeedState, failure: Failure | undefined): Hops => {
  if (state === 'live') return { service: 'open', page: 'open' };
  if (state === 'connecting') return { service: 'unknown', page: 'trying' };
  const bad: LinkState = state === 'stopped' ? 'broken' : 'trying';
  return failure && isOfPage(failure) ? { service: 'unknown', page: bad } : { service: bad, page: 'open' };
};
