/**
 * @lane clock
 * @ci
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { config } from 'rxjs';
import { runEpisode } from '../chaos/episode.js';
import { OwnError } from '../../test/model/watched.js';

beforeAll(() => {
  config.onUnhandledError = (error) => {
    if (!(error instanceof OwnError)) throw error;
  };
});
afterAll(() => {
  config.onUnhandledError = null;
});

it('a short episode breaks no rule', async () => {
  let hasReconnected = false;
  // On a slow machine, no feed may have reconnected after three seconds.
  for (let lengthMs = 3_000; !hasReconnected && lengthMs < 30_000; lengthMs *= 2) {
    const { violations, logs } = await runEpisode(20_261_121, lengthMs, undefined);
    expect(violations).toEqual([]);
    const log = [...logs.values()].flat();
    expect(log.some(({ what }) => what === 'frame')).toBe(true);
    hasReconnected = log.some((seen) => seen.what === 'event' && seen.event.type === 'reconnecting');
  }
  expect(hasReconnected).toBe(true);
}, 300_000);
