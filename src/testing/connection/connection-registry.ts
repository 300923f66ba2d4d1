import type { Feed } from '../../protocol/feed.js';
import { feeds } from '../../protocol/feed-names.js';
import type { Connection } from './connection.js';

/** The open connections: at most one per account, for all keys of the account and both feeds (contract, section 8). */
export interface ConnectionRegistry {
  /** The number of accounts with an open connection. */
  readonly liveUsers: number;
  of(account: string): Connection | undefined;
  on(feed: Feed): ReadonlySet<Connection>;
  all(): readonly Connection[];
  /** Registers and opens a connection. Returns the account's earlier connection, which is no longer registered. */
  register(connection: Connection): Connection | undefined;
  /** Removes a closed connection. */
  remove(connection: Connection): void;
}

/** Creates an empty registry. */
export const createConnectionRegistry = (): ConnectionRegistry => {
  const byAccount = new Map<string, Connection>();
  const byFeed = Object.fromEntries(feeds.map((feed) => [feed, new Set<Connection>()])) as Record<
    Feed,
    Set<Connection>
  >;
  return {
    get liveUsers() {
      return byAccount.size;
    },
    of: (account) => byAccount.get(account),
    on: (feed) => byFeed[feed],
    all: () => [...byAccount.values()],
    register: (connection) => {
      const earlier = byAccount.get(connection.account);
      if (earlier) byFeed[earlier.feed].delete(earlier);
      byAccount.set(connection.account, connection);
      byFeed[connection.feed].add(connection);
      connection.signal('register');
      return earlier;
    },
    remove: (connection) => {
      byFeed[connection.feed].delete(connection);
      if (byAccount.get(connection.account) === connection) byAccount.delete(connection.account);
    },
  };
};
