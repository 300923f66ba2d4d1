import type { Observable } from 'rxjs';
import { type AccountUser, useAccount } from '../accounts/account-use.js';
import { createFeedCluster, type FeedCluster } from '../cluster/index.js';
import { resolveTicketOptions } from '../options.js';
import type { FeedEvent, OwnerChanged } from '../protocol/event.js';
import { feedEvents$ } from '../trade-feed.js';
import type { ModuleSettings } from './module-options.js';

/** Where the events of a feed come from: a connection of this process, or a cluster of replicas. */
export interface FeedSource {
  readonly events$: Observable<FeedEvent | OwnerChanged>;
  readonly cluster: FeedCluster | undefined;
  /** Registers the account for the warning that two feeds use it. Returns a function that ends this. */
  useAccount(): () => void;
}

/**
 * Creates the source of a feed.
 *
 * @param onClosing - is called for each connection that starts to close
 */
export const createFeedSource = (
  { feed, settings, cluster: options }: ModuleSettings,
  user: AccountUser,
  onClosing: (closed: Promise<void>) => void,
): FeedSource => {
  if (options === undefined) {
    const feedSettings = resolveTicketOptions(settings);
    const events$ = feedEvents$(feed, feedSettings, { user, onClosing });
    return { events$, cluster: undefined, useAccount: () => useAccount(feedSettings, user) };
  }
  const cluster = createFeedCluster(feed, { ...settings, ...options });
  // Replicas share an account: that is what they are for.
  return { events$: cluster.events$, cluster, useAccount: () => () => undefined };
};
