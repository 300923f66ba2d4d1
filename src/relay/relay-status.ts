import type { ClientSlots } from './client-slots.js';
import type { TopicRuns } from './topic-runs.js';

/** The status of a relay. */
export interface RelayStatus {
  /** The number of stored events of the complete feed and all topics, and their bytes. */
  readonly stored: { readonly events: number; readonly bytes: number };
  readonly clients: readonly RelayClientStatus[];
  /** The number of topics of `select`, including those that remain for `lingerMs`. If it grows, your app creates a new operator for each request. */
  readonly topics: number;
  /** The number of other clients, which wait for `authorize`. They count for `maxClients`. */
  readonly authorizing: number;
}

/** The status of one client. */
export interface RelayClientStatus {
  /** The number of the client: 1, 2, … */
  readonly client: number;
  /** The id of its user, if `authorize` returned one. */
  readonly user?: string;
  /** When it joined, in epoch ms. */
  readonly since: number;
  /** The number of frames that were sent. */
  readonly sent: number;
  /** The number of frames that were not sent, and that a gap has reported. */
  readonly missed: number;
}

/** Returns the status of a relay. */
export const relayStatus = (topics: TopicRuns, slots: ClientSlots): RelayStatus => ({
  stored: {
    events: topics.runs.reduce((sum, { log }) => sum + log.size, 0),
    bytes: topics.runs.reduce((sum, { log }) => sum + log.bytes, 0),
  },
  topics: topics.size,
  clients: slots.clients.map(({ client, user, since, state: { sent, missed } }) => ({
    ...{ client, since, sent, missed },
    ...(user !== undefined && { user }),
  })),
  authorizing: slots.authorizing,
});
