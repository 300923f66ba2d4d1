import type { RelayRefusal } from './refusals.js';
import type { JoinKind } from './resume.js';

/** A change of the clients or the source of a relay, for the log of your app. Discriminated by `type`. */
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
      /** The client reads too slowly: frames are skipped, and it receives gaps. Emitted once until it has caught up. */
      readonly type: 'client-behind';
      readonly at: number;
      readonly client: number;
      /** The number of frames that it has missed since it joined. */
      readonly missed: number;
    }
  | {
      /** The client read nothing for four heartbeats: its connection is closed. */
      readonly type: 'client-stuck';
      readonly at: number;
      readonly client: number;
    }
  | {
      readonly type: 'client-left';
      readonly at: number;
      readonly client: number;
      /** The number of frames that were sent. */
      readonly sent: number;
      /** The number of frames that were not sent, and that a gap has reported. */
      readonly missed: number;
    }
  | {
      /** The source errored. Clients receive only the public version of the error, and connect again. */
      readonly type: 'source-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** The operator of a topic failed, or emitted a value that has no JSON. Clients do not receive the error. */
      readonly type: 'topic-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** `authorize` or `select` threw, or returned something invalid. The client received a 500 without the error. */
      readonly type: 'client-failed';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** The relay refused a client: see {@link RelayRefusal}. A client that `authorize` refuses is not reported. */
      readonly type: 'client-refused';
      readonly at: number;
      readonly reason: RelayRefusal;
    };

/** A report without its time. */
export type Report = RelayActivity extends infer E ? (E extends RelayActivity ? Omit<E, 'at'> : never) : never;

/** The status of a relay. */
export interface RelayStatus {
  /** The number of stored events of the complete feed and all topics, and their bytes. */
  readonly stored: { readonly events: number; readonly bytes: number };
  readonly clients: readonly RelayClientStatus[];
  /**
   * The number of topics of `select`, including those that remain for `lingerMs`. If it grows, your app creates a new
   * operator for each request.
   */
  readonly topics: number;
  /** The number of other clients, which wait for `authorize`. They count for `maxClients`. */
  readonly authorizing: number;
  /** Why the relay cannot admit clients, until one joins. Missing if it can. */
  readonly refused?: RelayRefused;
}

/** What your app does to clients: `authorize` or `select` fails, or `authorize` does not answer in time. */
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
  /** The id of its user, if `authorize` returned one. */
  readonly user?: string;
  /** When it joined, in epoch ms. */
  readonly since: number;
  /** The number of frames that were sent. */
  readonly sent: number;
  /** The number of frames that were not sent, and that a gap has reported. */
  readonly missed: number;
}

/** Returns {@link RelayStatus.refused} after an event. */
export const refusedAfter = (before: RelayRefused | undefined, event: RelayActivity): RelayRefused | undefined => {
  if (event.type === 'client-joined') return undefined;
  const isLate = event.type === 'client-refused' && event.reason === 'authorize-timeout';
  if (!isLate && event.type !== 'client-failed') return before;
  return { code: isLate ? 'relay-authorize-timeout' : 'relay-failed', since: before?.since ?? event.at };
};
