import { expect, it, jest } from '@jest/globals';

const load = jest.fn(() => ({ tryLock: () => true }));
jest.unstable_mockModule('../../src/log/load-native-lock.cjs', () => ({ default: load }));

it('a log loads its lock when it is asked to append, not only when an owner opens it, and reading needs none', async () => {
  const { feedLog } = await import('../../src/log/index.js');
  const log = feedLog('market');
  log.read$();
  expect(load).not.toHaveBeenCalled();
  log.append();
  expect(load).toHaveBeenCalledTimes(1);
  load.mockImplementation(() => {
    throw new Error('no binary');
  });
  expect(() => log.append()).not.toThrow();
});
