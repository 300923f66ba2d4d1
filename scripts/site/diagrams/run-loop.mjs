// Runs a loop over promises or a Node stream in virtual time. The clock stands still until the loop waits for it.
import { setImmediate as turn } from 'node:timers/promises';
import { firstValueFrom, timer, VirtualTimeScheduler } from 'rxjs';
import { messagesOf, sourceOf, unitMs } from './run.mjs';

/** Runs a loop that works for `workMs` on each value of an iterable. Returns a row for the source and one for the loop. */
export const runLoop = async ({ name, source, iterableOf, workMs, show }) => {
  const scheduler = new VirtualTimeScheduler();
  const sent = messagesOf(source);
  const messages = [];
  const add = (message) => messages.push({ at: scheduler.now(), ...message });
  let isOver = false;
  const loop = async () => {
    for await (const value of iterableOf(sourceOf(sent, scheduler))) {
      add({ value, ...show(value) });
      await firstValueFrom(timer(workMs, scheduler));
    }
    add({ label: 'complete', kind: 'end' });
  };
  const finished = loop().finally(() => {
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
  const end = Math.max(...[...sent, ...messages].map(({ at }) => at)) + unitMs;
  return {
    end,
    rows: [
      { name: 'source', messages: sent },
      { name, messages },
    ],
  };
};
