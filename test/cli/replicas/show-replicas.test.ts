import { describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Subject } from 'rxjs';
import type { DemoCluster, ReplicaEvent } from '../../../src/cli/replicas/demo-replica.js';
import { showReplicas } from '../../../src/cli/replicas/show-replicas.js';
import type { ClusterState } from '../../../src/cluster/operate.js';
import { fakeTimers } from '../../support/fake-timers.js';
import { waitFor } from '../../support/wait-for.js';
import { fakeContext } from '../support/fake-context.js';
import { FakeOutput } from '../support/fake-output.js';
import { fakeTerminal } from '../support/fake-terminal.js';

const stateOf = (owner: string): ClusterState => ({
  key: {
    ...{ v: 1, feed: 'market', epoch: 1, gen: 1, owner, phase: 'open', since: 0 },
    ...{ credits: [], evictions: [], changes: [] },
  },
  standbys: [],
});

/** Creates a cluster that records what is asked of it. */
const fakeCluster = (fields: Partial<DemoCluster> = {}) => {
  const calls: string[] = [];
  const running = new Map<string, Subject<ReplicaEvent>>();
  const cluster: DemoCluster = {
    description: 'in a test',
    start: (name) => {
      calls.push(`start ${name}`);
      const events$ = new Subject<ReplicaEvent>();
      running.set(name, events$);
      return {
        events$,
        kill: () => {
          calls.push(`kill ${name}`);
          events$.complete();
        },
        stop: () => void calls.push(`stop ${name}`),
      };
    },
    state: () => Promise.resolve(stateOf('a-1')),
    handOver: () => Promise.resolve(true),
    close: () => Promise.resolve(),
    ...fields,
  };
  return { cluster, calls, running };
};

const shown = (fields: Partial<DemoCluster> = {}, durationMs?: number, stdout = terminal()) => {
  const fake = fakeCluster(fields);
  const stdin = fakeTerminal();
  const context = fakeContext({ stdin, stdout });
  const ended = showReplicas(fake.cluster, ['a', 'b'], durationMs, context);
  const type = async (keys: string): Promise<void> => {
    stdin.write(keys);
    await nextTurn();
  };
  return { ...fake, context, stdin, ended, type };
};

const terminal = (): FakeOutput => new FakeOutput({ columns: 100, rows: 24 });

describe('the keys of demo --replicas', () => {
  it('kill, stop and start the selected replica', async () => {
    const { calls, running, type, ended, context } = shown();
    expect(calls.splice(0)).toEqual(['start a', 'start b']);
    await type('rx');
    await type('2k');
    await type('ksr');
    await type('s');
    await type('1s');
    running.get('a')!.complete();
    expect(calls).toEqual(['kill b', 'start b', 'stop b', 'stop a']);
    await type('q');
    const { ending, tally } = await ended;
    expect(ending).toEqual({ kind: 'interrupted', signal: 'SIGINT' });
    expect(tally.replicas.map(({ isRunning }) => isRunning)).toEqual([false, true]);
    const log = tally.log.map((line) => line.replace(/^ *[\d.]+ s {2}/, ''));
    expect(log).toEqual(['kill -9 b', 'b has ended', 'stop b', 'stop a', 'a has ended']);
    expect(context.stdout.text).toContain('\x1b[?1049l');
  });

  it.each<[string, Partial<DemoCluster>, readonly string[]]>([
    ['moves the ownership', {}, ['hand over']],
    ['reports that there is no owner', { handOver: () => Promise.resolve(false) }, ['hand over', 'there is no owner']],
    [
      'reports an owner that does not answer',
      { handOver: () => Promise.reject(new Error('timeout')) },
      ['hand over', 'the owner did not answer'],
    ],
  ])('h %s', async (_, fields, notes) => {
    const { type, ended } = shown(fields);
    await type('h');
    await type('\x03');
    const { log } = (await ended).tally;
    expect(log.map((line) => line.replace(/^ *[\d.]+ s {2}/, ''))).toEqual(notes);
  });

  it('are not read if stdout is not a terminal', async () => {
    const { type, ended, calls, context, stdin } = shown({}, undefined, new FakeOutput());
    await type('kq');
    context.interrupt$.next('SIGTERM');
    expect((await ended).ending).toEqual({ kind: 'interrupted', signal: 'SIGTERM' });
    expect(calls).toEqual(['start a', 'start b']);
    expect(stdin.modes).toEqual([]);
  });

  it('restore the terminal, also when it is gone', async () => {
    const { ended, stdin } = shown();
    expect(stdin.modes).toEqual([true]);
    stdin.emit('error', new Error('read EIO'));
    expect((await ended).ending).toEqual({ kind: 'interrupted', signal: 'SIGHUP' });
    expect(stdin.modes).toEqual([true, false]);
  });
});

describe('demo --replicas', () => {
  it('shows the frames and the owner, until its duration ends', async () => {
    using _timers = fakeTimers();
    let reads = 0;
    const state = async (): Promise<ClusterState> => {
      reads += 1;
      return reads === 1 ? Promise.reject(new Error('away')) : Promise.resolve(stateOf('a-1'));
    };
    const { running, ended, context } = shown({ state }, 60_000);
    running.get('a')!.next({ type: 'opened' });
    for (let n = 0; n < 10; n += 1) running.get('a')!.next({ type: 'frame' });
    // The first answer is an error.
    for (const read of [1, 2]) {
      jest.advanceTimersByTime(250);
      await waitFor(() => reads === read);
      await nextTurn();
    }
    expect(context.stdout.text).toMatch(/a .*owns the connection[^]*20\.0 frames\/s .*10 frames/);
    jest.advanceTimersByTime(60_000);
    const { ending, tally } = await ended;
    expect(ending).toEqual({ kind: 'time-up' });
    expect(tally).toMatchObject({ owner: 'a', replicas: [{ frames: 10 }, { frames: 0 }] });
  });

  it('ends when stdout cannot be written', async () => {
    const { ended, context } = shown();
    context.stdout.destroy(Object.assign(new Error('full'), { code: 'ENOSPC' }));
    expect((await ended).ending.kind).toBe('failed');
  });
});
