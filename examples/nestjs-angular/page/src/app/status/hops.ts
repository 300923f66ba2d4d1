import { type Failure, isOfPage } from '../feed/failure';
import type { FeedState } from '../feed/monitor';

/** How a link stands. */
export type LinkState = 'open' | 'trying' | 'broken' | 'unknown';

/** The way of a frame: from the service to the relay, from the relay to this page. */
export interface Hops {
  readonly service: LinkState;
  readonly page: LinkState;
}

/** Says which link has trouble: what the page itself saw of the relay has a code that begins with `relay-`. */
export const hopsOf = (state: FeedState, failure: Failure | undefined): Hops => {
  if (state === 'live') return { service: 'open', page: 'open' };
  if (state === 'connecting') return { service: 'unknown', page: 'trying' };
  const bad: LinkState = state === 'stopped' ? 'broken' : 'trying';
  return failure && isOfPage(failure) ? { service: 'unknown', page: bad } : { service: bad, page: 'open' };
};
