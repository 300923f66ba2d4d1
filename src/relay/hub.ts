import type { Observable, SchedulerLike } from 'rxjs';
import type { AsyncContext } from '../operators/items/async-context.js';
import type { Report } from './relay-reports.js';
import type { ReplaySlots } from './replay.js';
import type { Turns } from './turns.js';

/** What all clients of a relay share. */
export interface RelayHub {
  readonly scheduler: SchedulerLike;
  /** The context of the work that belongs to no client. */
  readonly home: AsyncContext | undefined;
  readonly heartbeats$: Observable<unknown>;
  readonly watermarks$: Observable<unknown>;
  /** Emits per subscriber once its stream has reached `maxAgeMs`. */
  readonly tooOld$: Observable<unknown>;
  readonly report: (event: Report) => void;
  readonly turns: Turns;
  readonly replays: ReplaySlots;
  /** Counts the clients that have joined. */
  joined: number;
}
