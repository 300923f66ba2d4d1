import { expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { releaseAsyncStorages } from './release-async-storages.cjs';

// A class with separate methods: the storage of this test file must not be disabled.
const trackedStorage = () => {
  class Tracked extends AsyncLocalStorage<string> {}
  for (const method of ['run', 'enterWith'] as const) {
    Object.defineProperty(Tracked.prototype, method, { value: AsyncLocalStorage.prototype[method], writable: true });
  }
  return Tracked;
};

it('disables each storage that was used since the last call', () => {
  const Tracked = trackedStorage();
  const release = releaseAsyncStorages(Tracked);
  const [entered, ran, unused] = [new Tracked(), new Tracked(), new Tracked()];
  entered.enterWith('a');
  ran.run('b', () => {
    expect([entered.getStore(), ran.getStore()]).toEqual(['a', 'b']);
    release();
    expect([entered.getStore(), ran.getStore(), unused.getStore()]).toEqual([undefined, undefined, undefined]);
  });
});

it('disables a storage again that is used again, and no other', () => {
  const Tracked = trackedStorage();
  const release = releaseAsyncStorages(Tracked);
  const [again, once] = [new Tracked(), new Tracked()];
  for (const storage of [again, once]) storage.enterWith('first');
  release();
  again.enterWith('second');
  // Not tracked: this is the method of the parent class. Its `run` would call `enterWith`, which is tracked, since Node 24.
  AsyncLocalStorage.prototype.enterWith.call(once, 'second');
  expect([again.getStore(), once.getStore()]).toEqual(['second', 'second']);
  release();
  expect([again.getStore(), once.getStore()]).toEqual([undefined, 'second']);
  once.disable();
});

it('passes arguments and the result through', () => {
  const Tracked = trackedStorage();
  const release = releaseAsyncStorages(Tracked);
  expect(new Tracked().run('x', (...given: number[]) => given.reduce((a, b) => a + b), 1, 2, 3)).toBe(6);
  release();
});
