// Runs consumers that use promises, Node streams or files in virtual time. The clock stands still until they wait for it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { firstValueFrom, timer, VirtualTimeScheduler } from 'rxjs';
import { messagesOf, sourceOf, unitMs } from './run.mjs';

/**
 * Runs a consumer, and returns the messages that it adds.
 *
 * @param consume - `(scheduler, add)`: returns a promise that resolves when the consumer has finished
 */
export const runInTurns = async (consume) => {
  const scheduler = new VirtualTimeScheduler();
  const messages = [];
  let isOver = false;
  const finished = consume(scheduler, (message) => messages.push({ at: scheduler.now(), ...message })).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    // Promises and streams act before the next turn. A file needs more turns, in which the consumer waits for no timer.
    await turn();
    const [next] = scheduler.actions;
    if (isOver || next === undefined) continue;
    scheduler.maxFrames = next.delay;
    scheduler.flush();
  }
  await finished;
  return messages;
};

/** Runs a loop that works for `workMs` on each value of an iterable. */
export const runLoop = ({ source, iterableOf, workMs, show }) =>
  runInTurns(async (scheduler, add) => {
    for await (const value of iterableOf(sourceOf(messagesOf(source), scheduler))) {
      add({ value, ...show(value) });
      await firstValueFrom(timer(workMs, scheduler));
    }
    add({ label: '', kind: 'end' });
  });

/** Subscribes to an Observable until it completes. */
export const runUntilComplete = ({ stream$, show }) =>
  runInTurns(
    (scheduler, add) =>
      new Promise((resolve, reject) => {
        stream$(scheduler).subscribe({
          next: (value) => add({ value, ...show(value) }),
          error: reject,
          complete: () => {
            add({ label: '', kind: 'end' });
            resolve();
          },
        });
      }),
  );

/** Calls a function with a path in a folder that is deleted afterwards. */
export const withFile = async (name, use) => {
  const folder = mkdtempSync(join(tmpdir(), 'diagram-'));
  try {
    return await use(join(folder, name));
  } finally {
    rmSync(folder, { recursive: true });
  }
};

/** Returns the lines of a recording as messages at their recorded times. */
export const recordedIn = (path, show) =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .map((value) => ({ at: value.type === 'gap' ? value.to : value.receivedAt, value, ...show(value) }));

/** Returns a run of these rows. It ends after the last message. */
export const runOf = (rows) => ({
  end: Math.max(...rows.flatMap(({ messages }) => messages.map(({ at }) => at))) + unitMs,
  rows,
});
