import type { ClusterState } from '../../cluster/operate.js';
import { count, counted } from '../view/units.js';
import type { ReplicaEvent } from './demo-replica.js';

/** The totals of one replica. */
export interface ReplicaTally {
  readonly name: string;
  readonly isRunning: boolean;
  readonly frames: number;
  /** The frames of each of the last ticks. */
  readonly perTick: readonly number[];
  readonly gaps: number;
  /** The frames that gaps reported with a number. */
  readonly missed: number;
  readonly last: string;
}

/** The totals of all replicas, and the owner. */
export interface ReplicasTally {
  readonly startedAt: number;
  readonly now: number;
  readonly replicas: readonly ReplicaTally[];
  /** The index of the replica that the keys concern. */
  readonly selected: number;
  readonly owner: string | undefined;
  readonly generation: number;
  readonly log: readonly string[];
}

/** Everything that changes the totals. */
export type ReplicasEvent =
  | { readonly type: 'started' | 'ended'; readonly index: number }
  | { readonly type: 'event'; readonly index: number; readonly event: ReplicaEvent }
  | { readonly type: 'state'; readonly state: ClusterState }
  | { readonly type: 'selected'; readonly index: number }
  | { readonly type: 'note'; readonly text: string }
  | { readonly type: 'tick' };

const logLength = 5;
const tickCount = 40;

/** Returns the totals before the first event. */
export const emptyReplicas = (names: readonly string[], now: number): ReplicasTally => ({
  ...{ startedAt: now, now, selected: 0, owner: undefined, generation: 0, log: [] },
  replicas: names.map((name) => ({
    ...{ name, isRunning: false, frames: 0, perTick: [0], gaps: 0, missed: 0, last: 'not started' },
  })),
});

/** Returns the totals with another event. */
export const talliedReplicas = (tally: ReplicasTally, event: ReplicasEvent, now: number): ReplicasTally => {
  const at = { ...tally, now };
  switch (event.type) {
    case 'started':
      return change(at, event.index, (replica) => ({ ...replica, isRunning: true, last: 'starting' }));
    case 'ended':
      return noted(
        change(at, event.index, (replica) => ({ ...replica, isRunning: false, last: 'has ended' })),
        `${tally.replicas[event.index]?.name} has ended`,
      );
    case 'event':
      return change(at, event.index, (replica) => afterEvent(replica, event.event));
    case 'state':
      return afterState(at, event.state);
    case 'selected':
      return event.index < tally.replicas.length ? { ...at, selected: event.index } : at;
    case 'note':
      return noted(at, event.text);
    case 'tick':
      return {
        ...at,
        replicas: tally.replicas.map((each) => ({ ...each, perTick: [...each.perTick, 0].slice(-tickCount) })),
      };
  }
};

const change = (
  tally: ReplicasTally,
  index: number,
  update: (replica: ReplicaTally) => ReplicaTally,
): ReplicasTally => ({
  ...tally,
  replicas: tally.replicas.map((replica, each) => (each === index ? update(replica) : replica)),
});

const noted = (tally: ReplicasTally, text: string): ReplicasTally => {
  const seconds = ((tally.now - tally.startedAt) / 1_000).toFixed(1).padStart(7);
  return { ...tally, log: [...tally.log, `${seconds} s  ${text}`].slice(-logLength) };
};

const afterEvent = (replica: ReplicaTally, { type, missed, failure }: ReplicaEvent): ReplicaTally => {
  switch (type) {
    case 'frame': {
      const perTick = replica.perTick.map((frames, n, all) => (n === all.length - 1 ? frames + 1 : frames));
      return { ...replica, frames: replica.frames + 1, perTick };
    }
    case 'gap': {
      const lost = missed === undefined ? '' : `, ${counted(missed, 'frame')} missed`;
      const last = `gap: ${failure?.code ?? 'unknown'}${lost}`;
      return { ...replica, gaps: replica.gaps + 1, missed: replica.missed + (missed ?? 0), last };
    }
    case 'disconnected':
    case 'stopped':
      return { ...replica, last: `${type}: ${failure?.code ?? 'unknown'}` };
    case 'opened':
      return replica.gaps > 0 ? replica : { ...replica, last: 'frames arrive' };
    default:
      return replica;
  }
};

const afterState = (tally: ReplicasTally, { key }: ClusterState): ReplicasTally => {
  if (key === undefined) return tally;
  const owner =
    key.owner === '' ? undefined : tally.replicas.find(({ name }) => key.owner.startsWith(`${name}-`))?.name;
  if (owner === tally.owner && key.gen === tally.generation) return tally;
  const next = { ...tally, owner, generation: key.gen };
  return owner === undefined ? next : noted(next, `${owner} owns the connection (generation ${count(key.gen)})`);
};
