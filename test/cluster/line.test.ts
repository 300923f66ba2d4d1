import { describe, expect, it } from '@jest/globals';
import { memoryEngine } from '../../src/cluster/index.js';
import { waitFor } from '../support/wait-for.js';
import { shortTimes, startTestCluster } from './support/replicas.js';

describe('a replica that was cut off', () => {
  it('fetches what it missed: no frame is lost, none comes twice, and there is no gap', async () => {
    await using test = await startTestCluster(memoryEngine(), true);
    const owner = await test.startOwner('a', shortTimes);
    const other = test.start('b', shortTimes);
    await test.owner(owner, other);
    const sent: string[] = [];
    const push = (count: number): void => {
      for (let n = 0; n < count; n += 1) {
        sent.push(`${sent.length}`);
        test.push(sent.at(-1)!);
      }
    };
    push(10);
    await waitFor(() => other.texts().length === 10, { what: () => `10: ${other.texts().length}` });
    other.engine.cut();
    push(1_000);
    await waitFor(() => owner.texts().length === 1_010, { what: () => `${owner.texts().length}` });
    other.engine.restore();
    push(10);
    await waitFor(() => other.texts().length >= 1_020, { what: () => `${other.texts().length}` });
    expect(other.texts()).toEqual(sent);
    expect(other.events.map(({ type }) => type).filter((type) => type !== 'frame' && type !== 'watermark')).toEqual([
      'opened',
    ]);
  });

  it('an owner that hands over loses nothing', async () => {
    await using test = await startTestCluster(memoryEngine(), true);
    const owner = await test.startOwner('a', shortTimes);
    const other = test.start('b', shortTimes);
    const third = test.start('c', shortTimes);
    await test.owner(owner, other, third);
    test.push('1', '2');
    await owner.cluster.handOver();
    await waitFor(
      () =>
        [other, third].some(({ cluster }) => cluster.status.role === 'owning') &&
        third.events.filter(({ type }) => type === 'gap').length === 1,
    );
    test.push('3');
    await waitFor(() => [other, third, owner].every((each) => each.texts().length === 3), {
      what: () => JSON.stringify([other, third, owner].map((each) => each.texts())),
    });
    for (const each of [other, third, owner]) expect(each.texts()).toEqual(['1', '2', '3']);
  });
});
