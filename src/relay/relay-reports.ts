import type { RelayRefusal } from './refusals.js';
import type { JoinKind } from './resume.js';

/** Reports a change of a relay's clients or source, for your app's log. Discriminated by `type`. */
export type RelayActivity =
  | {
      readonly type: 'client-joined';
      /** When, in epoch ms. */
      readonly at: number;
      /** The number of the client: 1, 2, … */
      readonly client: number;
      /** `new`: joins without a position; `resumed`: receives every event since it left; `behind`: receives a gap. */
      readonly joined: JoinKind;
    }
  | {
      /** The client reads too slowly, so frames are skipped and gaps sent. Emitted once until it has caught up. */
      readonly type: 'client-behind';
      readonly at: number;
      readonly client: number;
      /** Frames it has missed since it joined. */
      readonly missed: number;
    }
  | {
      /** The client read nothing for four heartbeats, so its connection is closed. */
      readonly type: 'client-stuck';
      readonly at: number;
      readonly client: number;
    }
  | {
      readonly type: 'client-left';
      readonly at: number;
      readonly client: number;
      /** Frames sent. */
      readonly sent: number;
      /** Frames skipped, which a gap has reported. */
      readonly missed: number;
    }
  | {
      /** The source errored. Clients receive only the public version of the error, and reconnect. */
      readonly type: 'source-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** A topic's operator failed, or emitted a value that JSON can't represent. Clients don't receive the error. */
      readonly type: 'topic-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** `authorize` or `select` threw, or returned something invalid. The client got a 500, but not the error. */
      readonly type: 'client-failed';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** The log can't be read, so a client that continues there receives a gap instead of the events it missed. */
      readonly type: 'replay-failed';
      readonly at: number;
      readonly client: number;
      readonly error: unknown;
    }
  | {
      /** The relay refused a client: see {@link RelayRefusal}. Clients that `authorize` refuses aren't reported. */
      readonly type: 'client-refused';
      readonly at: number;
      readonly reason: RelayRefusal;
    };

/** A report that doesn't have its time yet. */
export type Report = RelayActivity extends infer E ? (E extends RelayActivity ? Omit<E, 'at'> : never) : never;

/** The status of a relay. */
export interface RelayStatus {
  /** Events stored for the complete feed and all topics, and their bytes. */
  readonly stored: { readonly events: number; readonly bytes: number };
  readonly clients: readonly RelayClientStatus[];
  /**
   * Counts the topics of `select`, including unused ones kept for `lingerMs`. If it keeps growing, your app creates a
   * new operator for each request.
   */
  readonly topics: number;
  /** Clients still waiting for `authorize`. They count for `maxClients`. */
  readonly authorizing: number;
  /** How many replays failed: see the event `replay-failed`. */
  readonly failedReplays: number;
  /** Why the relay can't admit clients, until one joins. Missing if it can. */
  readonly refused?: RelayRefused;
}

/** What keeps your app from admitting clients: `authorize` or `select` fails, or `authorize` takes too long. */
export interface RelayRefused {
  /** The code that the clients report. */
  readonly code: 'relay-failed' | 'relay-authorize-timeout';
  /** When the first client was refused, in epoch ms. */
  readonly since: number;
}

/** The status of one client. */
export interface RelayClientStatus {
  /** The number of the client: 1, 2, … */
  readonly client: number;
  /** The user's id, if `authorize` returned one. */
  readonly user?: string;
  /** When it joined, in epoch ms. */
  readonly since: number;
  /** Frames sent. */
  readonly sent: number;
  /** Frames skipped, which a gap has reported. */
  readonly missed: number;
}

/** Returns {@link RelayStatus.refused} after an event. */
export const refusedAfter = (before: RelayRefused | undefined, event: RelayActivity): RelayRefused | undefined => {
  if (event.type === 'client-joined') return undefined;
  const isLate = event.type === 'client-refused' && event.reason === 'authorize-timeout';
  if (!isLate && event.type !== 'client-failed') return before;
  return { code: isLate ? 'relay-authorize-timeout' : 'relay-failed', since: before?.since ?? event.at };
};
