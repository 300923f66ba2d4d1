import { repairedKey } from '../../../src/cluster/election/cluster-key.js';
import { ownerOf } from '../../../src/cluster/election/election.js';
import type { Chance } from '../../simulation/chance.js';
import type { Timeline } from '../../simulation/timeline.js';
import type { Conditions, SimulatedEngine } from './engine.js';
import type { LineServer } from './line.js';
import type { SimulatedService } from './service.js';
import type { SimulatedReplica } from './simulated-replica.js';
import type { Store } from './store.js';

/** What a fault can change. */
export interface FaultTargets {
  /** Runs a later part of a fault. Faults are over once no part is left. */
  readonly later: (delayMs: number, action: () => void) => void;
  readonly chance: Chance;
  readonly engine: SimulatedEngine<SimulatedReplica>;
  readonly service: SimulatedService;
  readonly store: Store;
  /** A replica that is alive: often the owner. */
  readonly target: () => SimulatedReplica | undefined;
  readonly alive: () => readonly SimulatedReplica[];
  /** The replica that owns, but not `except`. */
  readonly owner: (except?: SimulatedReplica) => SimulatedReplica | undefined;
  /** Marks all replicas as disturbed from now on. */
  readonly disturbAll: (forMs: number) => void;
  readonly replace: (replica: SimulatedReplica, how: 'kill' | 'hand-over') => void;
  readonly timeline: Timeline;
}

/** A fault: it begins, and ends after `durationMs`. */
export type Fault = (targets: FaultTargets, durationMs: number) => void;

type OnReplica = (replica: SimulatedReplica, targets: FaultTargets) => void;

const onReplica =
  (name: string, begin: OnReplica, end?: OnReplica): Fault =>
  (targets, durationMs) => {
    const replica = targets.target();
    if (replica === undefined) return;
    targets.timeline.note(`fault: ${name} of ${replica.id} for ${durationMs.toFixed(0)} ms`);
    replica.disturb(durationMs);
    begin(replica, targets);
    if (end) targets.later(durationMs, () => end(replica, targets));
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

/** A fault of attempts. It also drops some owners' connections, or there might be no attempt. */
const attempts =
  (...[name, value, normal]: Parameters<typeof condition>): Fault =>
  (targets, durationMs) => {
    condition(name, value, normal)(targets, durationMs);
    if (targets.chance.isTrue(0.5)) targets.service.drop();
  };

/** The owner loses the engine. Another node of the engine takes over, with the owner's data, older data, or none. */
const failOver: Fault = ({ alive, chance, engine, later, owner, timeline, replace, store }) => {
  const replica = owner();
  if (replica === undefined) return;
  const durationMs = chance.isTrue(0.5) ? chance.between(800, 1_500) : chance.between(1_500, 4_000);
  const isOtherLost = chance.isTrue(0.5);
  const lost = chance.oneOf([0, 0, 1, 5]);
  // Some of the next owners claim, and fail before they have a connection.
  const slow = chance.isTrue(0.4) ? alive().filter((each) => each !== replica) : [];
  for (const { conditions } of slow) conditions.ticketMs = 3_000;
  timeline.note(`fault: the engine fails over in ${durationMs.toFixed(0)} ms, without ${lost} writes of ${replica.id}`);
  replica.disturb(durationMs);
  replica.conditions.link = chance.oneOf(['refused', 'black-hole']);
  engine.updateLink(replica);
  later(durationMs, () => {
    for (const { conditions } of slow) conditions.ticketMs = 20;
    if (!replica.isAlive) return;
    store.rollBackTo((ownerOf(replica.election)?.revision ?? 0) - lost);
    const other = owner(replica);
    if (isOtherLost && other) replace(other, 'kill');
    replica.conditions.link = 'good';
    engine.updateLink(replica);
  });
};

/** The owner's network fails: its connection drops, its next handshake is slow, and the engine is unreachable. */
const networkFails: Fault = ({ chance, engine, later, owner, timeline, replace, service }) => {
  const replica = owner();
  if (replica === undefined) return;
  const { conditions } = replica;
  const durationMs = chance.between(3_000, 6_000);
  timeline.note(`fault: the network of ${replica.id} fails for ${durationMs.toFixed(0)} ms`);
  replica.disturb(durationMs);
  conditions.handshakeMs = 8_000;
  service.drop();
  later(chance.between(100, 1_500), () => {
    if (chance.isTrue(0.3)) return replace(replica, 'hand-over');
    conditions.link = chance.oneOf(['refused', 'black-hole']);
    engine.updateLink(replica);
  });
  later(durationMs, () => {
    conditions.handshakeMs = 20;
    conditions.link = 'good';
    engine.updateLink(replica);
  });
};

/** How long a healthy owner may take to rewrite a damaged key: until its next renewal, plus its call. */
const maxRepairMs = 2_000;

/** Repairs an unreadable key, like an operator. */
export const repair = (store: Store, timeline: Timeline): void => {
  const read = store.read();
  if (read.type !== 'unreadable') return;
  timeline.note('the key is repaired');
  store.write(repairedKey('?'), read.revision);
};

/** A fault of the store of the line. */
const ofLine =
  (text: string, begin: (line: LineServer) => void, end?: (line: LineServer) => void): Fault =>
  ({ engine: { line }, later, timeline }, durationMs) => {
    if (line === undefined) return;
    timeline.note(`fault: the line ${text}${end ? ` for ${durationMs.toFixed(0)} ms` : ''}`);
    begin(line);
    if (end) later(durationMs, () => end(line));
  };
const lineState = (state: LineServer['state']): Fault =>
  ofLine(
    `is ${state}`,
    (line) => void (line.state = state),
    (line) => void (line.state = 'good'),
  );

/** A cut that takes longer than the others. */
const longCut: Fault = (targets) =>
  condition(
    'link',
    targets.chance.oneOf(['refused', 'black-hole']),
    'good',
  )(targets, targets.chance.between(2_000, 20_000));

/** What only happens to an engine with a line. */
export const lineFaults = ['line silent', 'line away', 'line full', 'line lost', 'line slow', 'long cut'];

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
  'late handshakes': attempts('handshakeMs', 8_000, 20),
  'very late handshakes': attempts('handshakeMs', 50_000, 20),
  'slow tickets': attempts('ticketMs', 3_000, 20),
  'link refused': condition('link', 'refused', 'good'),
  'black hole': condition('link', 'black-hole', 'good'),
  'lost messages': condition('loss', 0.3, 0),
  'slow store': condition('storeMs', 3_000, 3),
  kill: onReplica('kill', (replica, { replace }) => replace(replica, 'kill')),
  'hand-over': onReplica('hand-over', (replica, { replace }) => replace(replica, 'hand-over')),
  'clock jump': onReplica('clock jump', (replica, { chance }) => replica.jumpClock(chance.between(-60_000, 60_000))),
  'engine away': ({ engine, later, timeline, disturbAll }, durationMs) => {
    timeline.note(`fault: engine away for ${durationMs.toFixed(0)} ms`);
    disturbAll(durationMs);
    engine.setUp(false);
    later(durationMs, () => engine.setUp(true));
  },
  'engine fails over': failOver,
  'network fails': networkFails,
  'hand-over with losses': onReplica(
    'hand-over with losses',
    (replica, { replace }) => {
      replica.conditions.loss = 0.5;
      replace(replica, 'hand-over');
    },
    (replica) => {
      replica.conditions.loss = 0;
    },
  ),
  'store wiped': ({ store, timeline }) => {
    timeline.note('fault: store wiped');
    store.wipe();
  },
  // An operator repairs it if no owner does.
  'key damaged': ({ store, timeline, owner, later }, durationMs) => {
    timeline.note('fault: key damaged');
    const isStillDamaged = store.damage();
    later(durationMs, () => {
      const replica = owner();
      const healthyMs = Math.min(durationMs, replica?.undisturbedMs ?? 0);
      if (isStillDamaged() && healthyMs > maxRepairMs) timeline.wrong(`${replica!.id} does not write its key again`);
      repair(store, timeline);
    });
  },
  'access revoked': ({ service, later, timeline }, durationMs) => {
    timeline.note(`fault: access revoked for ${durationMs.toFixed(0)} ms`);
    service.setEntitled(false);
    service.drop();
    later(durationMs, () => service.setEntitled(true));
  },
  'store rolled back': ({ store, chance, timeline }) => {
    const writes = Math.ceil(chance.between(0, 10));
    timeline.note(`fault: store loses ${writes} writes`);
    store.rollBack(writes);
  },
  'connection dropped': ({ service, timeline }) => {
    timeline.note('fault: connection dropped');
    service.drop();
  },
  'line silent': lineState('silent'),
  'line away': lineState('away'),
  'line full': lineState('full'),
  'line lost': ofLine('is lost', (line) => line.lose()),
  'line slow': ofLine(
    'is slow',
    (line) => void (line.delayMs = 1_500),
    (line) => void (line.delayMs = 3),
  ),
  'long cut': longCut,
  'service away': ({ service, later, timeline }, durationMs) => {
    timeline.note(`fault: service away for ${durationMs.toFixed(0)} ms`);
    service.setUp(false);
    service.drop();
    later(durationMs, () => service.setUp(true));
  },
};
