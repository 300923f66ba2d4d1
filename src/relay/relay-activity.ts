import type { RelayRefusal } from './relay-full-error.js';
import type { JoinKind } from './start-position.js';

/** What happens to the clients and the source of a relay, for the log of your app. Discriminated by `type`. */
export type RelayActivity =
  | {
      readonly type: 'client-joined';
      /** When, in epoch ms. */
      readonly at: number;
      /** The number of the client: 1, 2, … */
      readonly client: number;
      /** `new`: joined for the first time; `resumed`: receives every event since it left; `behind`: too late for that, so it receives a gap. */
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
      /** The source errored. Clients receive the public texts of the error (`toPublic()`) and connect again. Only this event has all of it. */
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
      /** The relay had no room for a client. */
      readonly type: 'client-refused';
      readonly at: number;
      readonly reason: RelayRefusal;
    };
