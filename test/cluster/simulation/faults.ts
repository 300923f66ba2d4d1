import type { Chance } from './chance.js';
import type { SimulatedEngine } from './engine.js';
import type { Conditions } from './network.js';
import type { Schedule } from './schedule.js';
import type { SimulatedService } from './service.js';
import type { SimulatedReplica } from './simulated-replica.js';
import type { Store } from './store.js';

/** What a fault can change. */
export interface FaultTargets {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly engine: SimulatedEngine;
  readonly service: SimulatedService;
  readonly store: Store;
  /** A replica that is alive: often the owner. */
  readonly target: () => SimulatedReplica | undefined;
  readonly replace: (replica: SimulatedReplica, how: 'kill' | 'hand-over') => void;
  readonly record: (text: string) => void;
}

/** A fault: it begins, and ends after `durationMs`. */
export type Fault = (targets: FaultTargets, durationMs: number) => void;

type OnReplica = (replica: SimulatedReplica, targets: FaultTargets) => void;

const onReplica =
  (name: string, begin: OnReplica, end?: OnReplica): Fault =>
  (targets, durationMs) => {
    const replica = targets.target();
    if (replica === undefined) return;
    targets.record(`fault: ${name} of ${replica.id} for ${durationMs.toFixed(0)} ms`);
    begin(replica, targets);
    if (end) targets.schedule.after(durationMs, () => end(replica, targets));
  };

const condition = <Name extends keyof Conditions>(
  name: Name,
  value: Conditions[Name],
  normal: Conditions[Name],
): Fault => {
  const set =
    (next: Conditions[Name]): OnReplica =>
    (replica, { engine }) => {
      replica.conditions[name] = next;
      engine.updateLink(replica);
    };
  return onReplica(`${name} ${value}`, set(value), set(normal));
};

/** All faults by name. */
export const faults: Readonly<Record<string, Fault>> = {
  pause: onReplica(
    'pause',
    (replica) => replica.pause(),
    (replica) => replica.resume(false),
  ),
  suspend: onReplica(
    'suspension',
    (replica) => replica.pause(),
    (replica) => replica.resume(true),
  ),
  'late handshakes': condition('handshakeMs', 50_000, 20),
  'slow tickets': condition('ticketMs', 3_000, 20),
  'link refused': condition('link', 'refused', 'good'),
  'black hole': condition('link', 'black-hole', 'good'),
  'lost messages': condition('loss', 0.3, 0),
  'slow store': condition('storeMs', 3_000, 3),
  kill: onReplica('kill', (replica, { replace }) => replace(replica, 'kill')),
  'hand-over': onReplica('hand-over', (replica, { replace }) => replace(replica, 'hand-over')),
  'clock jump': onReplica('clock jump', (replica, { chance }) => replica.jumpClock(chance.between(-60_000, 60_000))),
  'engine away': ({ engine, schedule, record }, durationMs) => {
    record(`fault: engine away for ${durationMs.toFixed(0)} ms`);
    engine.setUp(false);
    schedule.after(durationMs, () => engine.setUp(true));
  },
  'store wiped': ({ store, record }) => {
    record('fault: store wiped');
    store.wipe();
  },
  'store rolled back': ({ store, chance, record }) => {
    const writes = Math.ceil(chance.between(0, 10));
    record(`fault: store loses ${writes} writes`);
    store.rollBack(writes);
  },
  'connection dropped': ({ service, record }) => {
    record('fault: connection dropped');
    service.drop();
  },
  'service away': ({ service, schedule, record }, durationMs) => {
    record(`fault: service away for ${durationMs.toFixed(0)} ms`);
    service.setUp(false);
    service.drop();
    schedule.after(durationMs, () => service.setUp(true));
  },
};
