import type { RelayRefusal } from './relay-full-error.js';
import type { JoinKind } from './start-position.js';

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
      /** The source errored. Clients receive the public version of the error, and connect again. Only this event contains the complete error. */
      readonly type: 'source-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** The operator of a topic failed, or emitted a value that has no JSON. Clients do not receive the text of the error. */
      readonly type: 'topic-stopped';
      readonly at: number;
      readonly error: unknown;
    }
  | {
      /** The relay refused a client: see {@link RelayRefusal}. A client that `authorize` refuses is not reported. */
      readonly type: 'client-refused';
      readonly at: number;
      readonly reason: RelayRefusal;
    };
