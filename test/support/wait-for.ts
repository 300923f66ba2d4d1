import { setTimeout } from 'node:timers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { NEVER, type Observable, take } from 'rxjs';

const defaultLimitMs = process.env['CI'] ? 50_000 : 8_000;

/** How long a program, a broker or a worker may take to start and to print, on the busiest machine. */
export const startLimitMs = 100_000;
/** jest's timeout for tests that wait for that. */
export const startTestLimitMs = 2 * startLimitMs;

/** For how many turns of the event loop to check each turn: most of what comes over loopback is there by then. */
const TURNS = 16;
const firstPausesMs = [1, 4];
const pauseMs = 10;
/** With `on`, time only counts toward the limit. */
const pauseWithEventsMs = 100;

export interface WaitForOptions {
  /** What the error says is missing. @defaultValue the source text of the condition */
  readonly what?: () => string;
  /** @defaultValue 8 000, and 50 000 in CI: less than the timeout of a test */
  readonly limitMs?: number;
  /** Checks after each value instead of polling. Fails at the end, because then nothing can come anymore. */
  readonly on?: Observable<unknown>;
}

/**
 * Waits until a condition returns a truthy value, and returns it. Fake timers and a mocked `Date` don't affect it.
 *
 * The limit counts pauses rather than the clock, so a process that was stopped or starved still gets all of its time.
 *
 * @throws Error when the condition still doesn't hold after `limitMs`, or at the end of `on`
 */
export const waitFor = async <T>(
  condition: () => T | Promise<T>,
  { what = () => String(condition), limitMs = defaultLimitMs, on }: WaitForOptions = {},
): Promise<NonNullable<T>> => {
  const everyMs = on ? pauseWithEventsMs : pauseMs;
  let turns = on ? TURNS : 0;
  let pauses = 0;
  let hasEnded = false;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (hasEnded) throw new Error(`The output ended without: ${what()}`);
    if (pauses * everyMs >= limitMs) throw new Error(`Waited ${limitMs} ms in vain for: ${what()}`);
    if (turns < TURNS) {
      turns += 1;
      await nextTurn();
      continue;
    }
    const reason = await nextOf(on ?? NEVER, on ? everyMs : (firstPausesMs[pauses] ?? everyMs));
    hasEnded = reason === 'end';
    if (reason === 'time') pauses += 1;
    // What emitted goes on first, and a burst of values is one check.
    else await nextTurn();
  }
};

/** Waits for the next value, for the end, or for some time. */
const nextOf = (on: Observable<unknown>, ms: number): Promise<'value' | 'end' | 'time'> =>
  new Promise((resolve) => {
    const subscription = on.pipe(take(1)).subscribe({ next: () => resolve('value'), complete: () => resolve('end') });
    const timer = setTimeout(() => {
      resolve('time');
      subscription.unsubscribe();
    }, ms);
    subscription.add(() => clearTimeout(timer));
  });
