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
  const { violations, logs } = await runEpisode(20_261_121, 3_000, undefined);
  expect(violations).toEqual([]);
  const log = [...logs.values()].flat();
  expect(log.some(({ what }) => what === 'frame')).toBe(true);
  expect(log.some((seen) => seen.what === 'event' && seen.event.type === 'reconnecting')).toBe(true);
}, 120_000);
