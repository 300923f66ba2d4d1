import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { config } from 'rxjs';
import { runEpisode } from '../../reliability/chaos/episode.js';
import { OwnError } from '../model/watched.js';

beforeAll(() => {
  config.onUnhandledError = (error) => {
    if (!(error instanceof OwnError)) throw error;
  };
});
afterAll(() => {
  config.onUnhandledError = null;
});

it('the ten rules hold in a short episode of random faults', async () => {
  const { violations, logs } = await runEpisode(20_261_121, 1_500, undefined);
  expect(violations).toEqual([]);
  const entries = [...logs.values()].flat();
  expect(entries.some(({ what }) => what === 'frame')).toBe(true);
  expect(entries.some((seen) => seen.what === 'event' && seen.event.type === 'reconnecting')).toBe(true);
}, 60_000);
