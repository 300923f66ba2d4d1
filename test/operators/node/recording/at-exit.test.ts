import { expect, it } from '@jest/globals';
import { atExit } from '../../../../src/operators/node/recording/at-exit.js';

it('atExit calls every function when the process exits, through one listener, and removes the listener', () => {
  const before = process.listeners('exit');
  const called: number[] = [];
  const removals = Array.from({ length: 11 }, (_, n) => {
    const remove = atExit(() => {
      called.push(n);
      // A recording that ends removes itself.
      remove();
    });
    return remove;
  });
  const [listener, ...others] = process.listeners('exit').filter((each) => !before.includes(each)) as (() => void)[];
  expect(others).toEqual([]);
  removals[3]?.();
  listener?.();
  expect(called).toEqual([0, 1, 2, 4, 5, 6, 7, 8, 9, 10]);
  expect(process.listeners('exit')).toEqual(before);
  removals[3]?.();
  expect(process.listeners('exit')).toEqual(before);
});
