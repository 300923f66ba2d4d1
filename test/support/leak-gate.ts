import { TestEnvironment } from 'jest-environment-node';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';

/**
 * The test environment of this project: fails a test file that leaves a timer, socket or server behind.
 *
 * It is an environment and not a setup file because jest runs the `afterAll` of a setup file before those of the test file,
 * which are the ones that close things; and because tests cannot fake the timers out here.
 *
 * Resources are counted by kind, so jest's own timers must be elsewhere: jest.config.mjs sets `workerIdleMemoryLimit`, which
 * makes jest use worker processes, also for a single file. With `--runInBand` the gate sees less.
 */
export default class LeakGate extends TestEnvironment {
  #before: ReadonlyMap<string, number> = new Map();

  override async setup(): Promise<void> {
    await super.setup();
    // Both are made on first use: a test that logs must not look like one that leaks a pipe.
    for (const stream of [process.stdout, process.stderr]) stream.write('');
    this.#before = activeResources();
  }

  async handleTestEvent(
    event: { readonly name: string },
    state: { readonly unhandledErrors: unknown[] },
  ): Promise<void> {
    if (event.name !== 'run_finish') return;
    const leaks = await leaksSince(this.#before);
    if (leaks.length > 0) state.unhandledErrors.push(leakError(leaks));
  }
}

const graceMs = 3_000;
const pollMs = 10;

/** Counts what keeps the event loop alive, by its kind: `Timeout`, `TCPSocketWrap`, `TCPServerWrap`, … */
const activeResources = (): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
};

const leaksNow = (before: ReadonlyMap<string, number>): string[] =>
  [...activeResources()]
    .map(([kind, count]) => [kind, count - (before.get(kind) ?? 0)] as const)
    .filter(([, more]) => more > 0)
    .map(([kind, more]) => `${more} ${kind}`);

// Handles close some turns after their close(): they get a bounded moment. The first turns are always taken, so that a
// rejection that nobody handles is seen while jest still listens for it.
const leaksSince = async (before: ReadonlyMap<string, number>): Promise<string[]> => {
  const deadline = performance.now() + graceMs;
  await nextTurn();
  await nextTurn();
  let leaks = leaksNow(before);
  while (leaks.length > 0 && performance.now() < deadline) {
    await delay(pollMs);
    leaks = leaksNow(before);
  }
  return leaks;
};

const leakError = (leaks: readonly string[]): Error => {
  const error = new Error(
    `This test file leaks: ${leaks.join(', ')} (still active ${graceMs} ms after its last test).`,
  );
  // The stack would show this file, which is not where the leak is.
  error.stack = error.message;
  return error;
};
