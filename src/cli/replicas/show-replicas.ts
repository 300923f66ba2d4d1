import { catchError, EMPTY, exhaustMap, firstValueFrom, from, interval, map, merge, NEVER, noop } from 'rxjs';
import { share, Subject, timer } from 'rxjs';
import { type CliContext, isTerminal } from '../context.js';
import { endingOf, endings$ } from '../follow/ending.js';
import type { Ending } from '../follow/event.js';
import { keys$, withKeys } from '../view/keys.js';
import type { DemoCluster, DemoReplica } from './demo-replica.js';
import { replicasTickMs } from './replicas-panel.js';
import { emptyReplicas, type ReplicasEvent, type ReplicasTally, talliedReplicas } from './replicas-tally.js';
import { replicasView } from './replicas-view.js';

/** How often the owner is read, in ms. */
const stateMs = 250;

/**
 * Starts replicas and shows them, with keys to end them and to move the ownership, until the user, a signal or the duration ends it.
 *
 * @param durationMs - how long, in ms; `undefined` for no limit
 * @returns the reason of the end, and the totals
 */
export const showReplicas = async (
  cluster: DemoCluster,
  names: readonly string[],
  durationMs: number | undefined,
  context: CliContext,
): Promise<{ readonly ending: Ending; readonly tally: ReplicasTally }> => {
  const events = new Subject<ReplicasEvent>();
  const note = (text: string): void => events.next({ type: 'note', text });
  const slots = names.map((name, index) => createSlot(cluster, name, index, events));
  let tally = emptyReplicas(names, Date.now());
  const view = replicasView(context, cluster.description);
  const typed$ = isTerminal(context.stdout, context) ? keys$(context).pipe(share()) : NEVER;

  const press = (key: string): void => {
    if (/^[1-9]$/.test(key)) events.next({ type: 'selected', index: Number(key) - 1 });
    else if (key === 'h') {
      note('hand over');
      cluster.handOver().then(
        (isAsked) => isAsked || note('there is no owner'),
        () => note('the owner did not answer'),
      );
    } else slots[tally.selected]?.press(key);
  };

  const running = merge(
    events,
    interval(replicasTickMs).pipe(map(() => ({ type: 'tick' as const }))),
    interval(stateMs).pipe(
      exhaustMap(() => from(cluster.state()).pipe(catchError(() => EMPTY))),
      map((state) => ({ type: 'state' as const, state })),
    ),
  ).subscribe((event) => {
    tally = talliedReplicas(tally, event, Date.now());
    view.show(event, tally);
  });
  // The end of the terminal ends the command, too.
  running.add(typed$.subscribe({ next: press, error: noop }));
  try {
    for (const slot of slots) slot.start();
    const ending = await firstValueFrom(
      merge(
        endings$(withKeys(context, typed$)),
        durationMs === undefined ? NEVER : timer(durationMs).pipe(map((): Ending => ({ kind: 'time-up' }))),
      ),
    );
    return { ending: endingOf(context.stdout) ?? ending, tally };
  } finally {
    running.unsubscribe();
    view.close();
  }
};

/** The place of a replica, which can end and start again. */
interface Slot {
  readonly start: () => void;
  /** Handles a key that concerns this replica. */
  readonly press: (key: string) => void;
}

const createSlot = (cluster: DemoCluster, name: string, index: number, events: Subject<ReplicasEvent>): Slot => {
  let running: DemoReplica | undefined;

  const start = (): void => {
    running = cluster.start(name);
    events.next({ type: 'started', index });
    running.events$.subscribe({
      next: (event) => events.next({ type: 'event', index, event }),
      complete: () => {
        running = undefined;
        events.next({ type: 'ended', index });
      },
    });
  };

  return {
    start,
    press: (key) => {
      if (running === undefined) {
        if (key === 'r') start();
        return;
      }
      if (key === 'k') {
        events.next({ type: 'note', text: `kill -9 ${name}` });
        running.kill();
      }
      if (key === 's') {
        events.next({ type: 'note', text: `stop ${name}` });
        running.stop();
      }
    },
  };
};
