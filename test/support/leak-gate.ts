import { TestEnvironment } from 'jest-environment-node';
import { ChildProcess } from 'node:child_process';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';

/**
 * The test environment of this project: fails a test file that leaves a timer, socket or server open, and one that starts a process but has no lane
 * (scripts/lanes.mjs).
 *
 * It's an environment because jest runs a setup file's `afterAll` before that of the test file, which closes sockets, and
 * because fake timers don't affect it.
 *
 * It counts resources by kind, so jest's own timers must be in another process: `workerIdleMemoryLimit` in jest.config.mjs
 * makes jest use workers even for a single file. Under `--runInBand`, the gate detects less.
 *
 * A resource that's still closing gets 3 s, or 15 s in CI. A test file can change that:
 * `@jest-environment-options {"leakGraceMs": 100}`.
 */
export default class LeakGate extends TestEnvironment {
  readonly #graceMs: number;
  readonly #hasLane: boolean;
  #before: ReadonlyMap<string, number> = new Map();

  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    super(...args);
    const { leakGraceMs = process.env['CI'] ? 15_000 : 3_000 } = args[0].projectConfig.testEnvironmentOptions;
    this.#graceMs = Number(leakGraceMs);
    this.#hasLane = 'lane' in args[1].docblockPragmas;
  }

  override async setup(): Promise<void> {
    await super.setup();
    // Node's default. jest sets 100, and looks up the source of each stack line: a millisecond for each TradeFeedError.
    this.global.Error.stackTraceLimit = 10;
    // Node creates both pipes on first use, so a test that logs would otherwise count as a leak.
    for (const stream of [process.stdout, process.stderr]) stream.write('');
    this.#before = activeResources();
    startedProcesses = 0;
  }

  async handleTestEvent(
    event: { readonly name: string },
    state: { readonly unhandledErrors: unknown[] },
  ): Promise<void> {
    if (event.name !== 'run_finish') return;
    const leaks = await leaksSince(this.#before, this.#graceMs);
    if (leaks.length > 0) state.unhandledErrors.push(leakError(leaks, this.#graceMs));
    if (startedProcesses > 0 && !this.#hasLane)
      state.unhandledErrors.push(
        withoutStack('This test file starts processes. It must begin with /** @lane processes */, or brokers.'),
      );
  }
}

const pollMs = 10;

/** How many processes the current test file has started. */
let startedProcesses = 0;
const { spawn } = ChildProcess.prototype as unknown as { spawn: (...args: unknown[]) => number };
Object.assign(ChildProcess.prototype, {
  spawn(this: unknown, ...args: unknown[]): number {
    startedProcesses += 1;
    return spawn.apply(this, args);
  },
});

/** Counts the active resources of the event loop by kind: `Timeout`, `TCPSocketWrap`, `TCPServerWrap`, … */
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

// A handle closes some turns after close(), so the gate gives it some time, which doesn't pass while the process is stopped. It always waits two turns,
// so that jest still reports unhandled rejections.
const leaksSince = async (before: ReadonlyMap<string, number>, graceMs: number): Promise<string[]> => {
  await nextTurn();
  await nextTurn();
  let leaks = leaksNow(before);
  for (let polls = graceMs / pollMs; leaks.length > 0 && polls > 0; polls -= 1) {
    await delay(pollMs);
    leaks = leaksNow(before);
  }
  return leaks;
};

const leakError = (leaks: readonly string[], graceMs: number): Error =>
  withoutStack(`This test file leaks: ${leaks.join(', ')} (still active ${graceMs} ms after its last test).`);

/** The stack would point to this file. */
const withoutStack = (message: string): Error => Object.assign(new Error(message), { stack: message });
