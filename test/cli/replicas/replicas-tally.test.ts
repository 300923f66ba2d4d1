import { describe, expect, it } from '@jest/globals';
import { type ReplicasEvent, emptyReplicas, talliedReplicas } from '../../../src/cli/replicas/replicas-tally.js';
import { replicasPanel } from '../../../src/cli/replicas/replicas-panel.js';
import { replicasSummary } from '../../../src/cli/replicas/replicas-view.js';
import type { ClusterState } from '../../../src/cluster/operate.js';
import { printed } from '../../../src/cli/view/line.js';

const keyOf = (owner: string, gen: number): ClusterState => ({
  key: {
    ...{ v: 1, feed: 'market', epoch: 1, gen, owner, phase: owner === '' ? 'free' : 'open', since: 0 },
    ...{ credits: [], evictions: [], changes: [] },
  },
  standbys: [],
});

const frame = (index: number): ReplicasEvent => ({ type: 'event', index, event: { type: 'frame' } });
const event = (index: number, type: string, fields = {}): ReplicasEvent => ({
  ...{ type: 'event', index },
  event: { type, ...fields },
});

const after = (...events: readonly ReplicasEvent[]) =>
  events.reduce((tally, each) => talliedReplicas(tally, each, 1_500), emptyReplicas(['a', 'b'], 1_000));

const textOf = (...events: readonly ReplicasEvent[]): readonly string[] =>
  replicasPanel(after(...events), { description: 'in one process', columns: 100, rows: 24 }).map((line) =>
    printed(line, 99, false),
  );

const running: readonly ReplicasEvent[] = [
  ...([0, 1] as const).map((index) => ({ type: 'started' as const, index })),
  event(0, 'opened'),
  ...[frame(0), frame(0), frame(1)],
  { type: 'tick' },
];

describe('the panels of replicas', () => {
  it('show the owner, the others, and those that are down', () => {
    const lines = textOf(...running, { type: 'state', state: keyOf('b-0123456789ab', 1) }, { type: 'ended', index: 0 });
    expect(lines).toContain(' ▶ ○ 1 a is down');
    expect(lines).toContain('   ● 2 b owns the connection');
    expect(lines.some((line) => line.includes('2 frames'))).toBe(true);
    expect(lines).toContain('     0.5 s  b owns the connection (generation 1)');
    expect(lines).toContain('     0.5 s  a has ended');
    expect(lines.at(-1)).toContain('h hand over');
  });

  it('count frames by tick', () => {
    const { replicas } = after(frame(0), frame(0), { type: 'tick' }, frame(0));
    expect(replicas.map(({ perTick }) => perTick)).toEqual([
      [2, 1],
      [0, 0],
    ]);
  });

  it('show the gaps of each replica', () => {
    const gap = (code: string, missed?: number) =>
      event(0, 'gap', { failure: { code }, ...(missed !== undefined && { missed }) });
    const lines = textOf(...running, gap('owner-changed'), gap('cluster-behind', 3), event(0, 'opened'));
    expect(lines.find((line) => line.includes('2 gaps'))).toMatch(
      /2 gaps, 3 missed +gap: cluster-behind, 3 frames missed/,
    );
    const failed = textOf(...running, event(1, 'disconnected', { failure: { code: 'cluster-away' } }), event(1, 'gap'));
    expect(failed.join('\n')).toContain('gap: unknown');
    expect(textOf(...running, event(1, 'stopped')).join('\n')).toContain('stopped: unknown');
  });

  it('select a replica, and ignore a number that no replica has', () => {
    expect(textOf(...running, { type: 'selected', index: 1 })).toContain(' ▶ ● 2 b follows');
    expect(after({ type: 'selected', index: 5 }).selected).toBe(0);
  });

  it('log each change of the owner once', () => {
    const state = (owner: string, gen: number): ReplicasEvent => ({ type: 'state', state: keyOf(owner, gen) });
    const { log, owner } = after(
      { type: 'state', state: { key: undefined, standbys: [] } },
      ...[state('a-1', 1), state('a-1', 1), state('', 1), state('b-1', 2), state('c-1', 3)],
      { type: 'note', text: 'kill -9 a' },
    );
    expect(log.map((line) => line.replace(/^ *[\d.]+ s {2}/, ''))).toEqual([
      'a owns the connection (generation 1)',
      'b owns the connection (generation 2)',
      'kill -9 a',
    ]);
    expect(owner).toBeUndefined();
  });

  it('fit into a small terminal', () => {
    expect(replicasPanel(after(), { description: '', columns: 40, rows: 4 }).length).toBe(4);
  });

  it('end with a summary', () => {
    expect(replicasSummary(after(...running))).toEqual([
      'a: 2 frames, 0 gaps, 0 missed',
      'b: 1 frame, 0 gaps, 0 missed',
    ]);
  });
});
