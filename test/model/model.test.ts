import { writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { config } from 'rxjs';
import { cases } from '../support/cases.js';
import { fakeTimers } from '../support/fake-timers.js';
import { startHeldService } from '../support/held-service.js';
import { sequences } from './commands.js';
import { failures } from './expected.js';
import type { Watched } from './watched.js';
import { endAll, type Model, type World } from './world.js';

/**
 * Runs `MODEL_RUNS` sequences; 2,000 in `npm run reliability -- model`. A failure prints its seed, path and replayPath:
 * rerun its shrunk sequence with `MODEL_SEED`, `MODEL_PATH` and `MODEL_REPLAY`, or all with the seed alone.
 */
const { MODEL_RUNS = cases(100), MODEL_SEED, MODEL_PATH, MODEL_REPLAY, MODEL_REPORT } = process.env;

afterEach(() => {
  config.onUnhandledError = null;
});

describe('the feed and its model', () => {
  it(
    'agree after each step, and the ten rules hold, for any actions of service and consumer',
    async () => {
      using _time = fakeTimers();
      const tally = new Map<string, number>();
      await fc.assert(
        fc.asyncProperty(sequences(MODEL_REPLAY), async (commands) => {
          jest.clearAllTimers();
          const watched = new Map<number, Watched>();
          const unhandled: unknown[] = [];
          config.onUnhandledError = (error) => unhandled.push(error);
          await using service = await startHeldService({ see: (id, seen) => watched.get(id)?.log.push(seen) });
          const model: Model = { feeds: new Map(), isUp: true, unhandled: 0, tally };
          const world: World = { service, watched, unhandled };
          try {
            await fc.asyncModelRun(() => ({ model, real: world }), commands);
            await endAll(model, world);
          } finally {
            for (const { unsubscribe } of watched.values()) unsubscribe();
          }
        }),
        {
          numRuns: Number(MODEL_RUNS),
          ...(MODEL_SEED === undefined ? {} : { seed: Number(MODEL_SEED) }),
          ...(MODEL_PATH === undefined ? {} : { path: MODEL_PATH }),
        },
      );
      // For `npm run reliability -- model`.
      if (MODEL_REPORT !== undefined)
        writeFileSync(MODEL_REPORT, JSON.stringify(Object.fromEntries([...tally].sort())));
      // Every step must have happened and, given enough runs, every failure.
      expect(tally.get('steps')).toBeGreaterThan(Number(MODEL_RUNS));
      if (Number(MODEL_RUNS) >= 1_000) expect(failures.filter(({ code }) => !tally.has(code))).toEqual([]);
    },
    30 * 60_000,
  );
});
