import { type Feed, feeds } from '../../protocol/feed.js';
import type { Connection } from './connection.js';

/** The open connections: one for each account, across its keys and both feeds (contract, section 8). */
export interface ConnectionRegistry {
  /** How many accounts are live. */
  readonly liveUsers: number;
  of(account: string): Connection | undefined;
  on(feed: Feed): ReadonlySet<Connection>;
  all(): readonly Connection[];
  /** Registers and opens a connection; gives the account's earlier one, which is no longer registered. */
  register(connection: Connection): Connection | undefined;
  /** Forgets a connection that has closed. */
  remove(connection: Connection): void;
}

/** Makes an empty registry. */
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
