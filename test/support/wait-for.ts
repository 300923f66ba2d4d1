import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';

const defaultLimitMs = process.env['CI'] ? 50_000 : 8_000;

/** For how many turns of the event loop to check the condition every turn, before checking once per ms. */
const TURNS = 100;

export interface WaitForOptions {
  /** What the error says is missing. @defaultValue the source text of the condition */
  readonly what?: () => string;
  /** @defaultValue 8 000, and 50 000 in CI: less than the timeout of a test */
  readonly limitMs?: number;
}

/**
 * Waits until a condition returns a truthy value, and returns it. Fake timers and a mocked `Date` don't affect it.
 *
 * @throws Error when the condition still doesn't hold after `limitMs`
 */
export const waitFor = async <T>(
  condition: () => T | Promise<T>,
  { what = () => String(condition), limitMs = defaultLimitMs }: WaitForOptions = {},
): Promise<NonNullable<T>> => {
  const deadline = performance.now() + limitMs;
  for (let turn = 0; ; turn += 1) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`Waited ${limitMs} ms in vain for: ${what()}`);
    await (turn < TURNS ? nextTurn() : delay(1));
  }
};
