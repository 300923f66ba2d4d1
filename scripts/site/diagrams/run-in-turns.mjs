// Runs consumers that use promises or Node streams in virtual time. The clock stands still until they wait for it.
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
    // Promises and streams act before the next turn.
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

/** Returns a run of these rows. It ends after the last message. */
export const runOf = (rows) => ({
  end: Math.max(...rows.flatMap(({ messages }) => messages.map(({ at }) => at))) + unitMs,
  rows,
});
