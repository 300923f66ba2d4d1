import { asyncScheduler } from 'rxjs';
import { aFunction, aScheduler, checkRequired, durationMs, oneOf } from '../../protocol/validate.js';
import { positiveCount, type Rule, validated } from '../../protocol/validate.js';
import { withOwnBytes } from '../items/item.js';
import type { Accumulator, IncompleteReason, WindowFacts } from './window.js';

export const integerMs: Rule = { allowed: 'a whole number of ms, 1 or more', is: positiveCount.is };

export const keyRules = { by: aFunction, maxKeys: positiveCount };

export const timeRules = {
  maxFrames: positiveCount,
  align: oneOf('epoch', 'start'),
  allowedLatenessMs: durationMs,
  scheduler: aScheduler,
};

export const windowDefaults = Object.freeze({
  align: 'epoch',
  allowedLatenessMs: 0,
  scheduler: asyncScheduler,
  maxFrames: 1_000_000,
  maxKeys: 100_000,
} as const);

type Rules = Readonly<Record<string, Rule>>;

/** Checks the options of a window and adds the defaults. `seed` and `add` require each other. */
export const resolveWindow = <O extends object>(
  input: O,
  required: Rules,
  { maxFrames, maxKeys, ...optional }: Rules,
): O & typeof windowDefaults & { readonly contents: WindowContents } => {
  const { seed, add, by } = Object(input) as Partial<ContentsOptions>;
  const isAccumulating = seed !== undefined || add !== undefined;
  const needed = isAccumulating ? { ...required, seed: aFunction, add: aFunction } : required;
  const limits = { ...(!isAccumulating && maxFrames && { maxFrames }), ...(by && maxKeys && { maxKeys }) };
  const options = { ...windowDefaults, ...validated<object>(input, { ...needed, ...limits, ...optional }) };
  checkRequired(options, needed);
  return { ...(options as O & typeof windowDefaults), contents: contentsOf(options) };
};

interface ContentsOptions extends Partial<Accumulator<unknown, unknown>> {
  readonly maxFrames: number;
  readonly by?: (item: unknown) => unknown;
  readonly maxKeys: number;
}

/** Says how a window stores its items: its state is a list of them, or the value of an accumulator. */
export interface WindowContents {
  /** Prepares an item to be stored. */
  readonly keep: (item: unknown) => unknown;
  /** How many items a window can add. */
  readonly limit: number;
  readonly seed: () => unknown;
  readonly add: (state: unknown, item: unknown) => unknown;
  /** Returns the fields of a window from its state. */
  readonly fields: (state: unknown, dropped: number) => object;
  /** Returns the key of an item, if each key has a window. */
  readonly by: ((item: unknown) => unknown) | undefined;
  readonly open: () => OpenWindow;
}

const contentsOf = ({ seed, add, by, maxFrames, maxKeys }: ContentsOptions) => {
  const contents: WindowContents = {
    ...(seed && add ? accumulated({ seed, add }) : framesUpTo(maxFrames)),
    by,
    open: () => (by === undefined ? new OneWindow(contents) : new WindowsByKey(contents, maxKeys)),
  };
  return contents;
};

const framesUpTo = (maxFrames: number): Omit<WindowContents, 'by' | 'open'> => ({
  keep: withOwnBytes,
  limit: maxFrames,
  seed: () => [],
  add: (frames, item) => {
    (frames as unknown[]).push(item);
    return frames;
  },
  fields: (frames, dropped) => ({ frames, dropped }),
});

const accumulated = ({ seed, add }: Accumulator<unknown, unknown>): Omit<WindowContents, 'by' | 'open'> => ({
  keep: (item) => item,
  limit: Infinity,
  seed,
  add,
  fields: (value) => ({ value }),
});

/** When a window began and ended, and why it's incomplete whatever its items are (`lacks`). */
type Period = Pick<WindowFacts, 'start' | 'end' | 'gaps'> & { readonly lacks: IncompleteReason | undefined };

/** The open window of a period, or one for each of its keys. */
export interface OpenWindow {
  /** The number of items, including dropped ones. */
  readonly count: number;
  /** Adds an item, or only counts it if `isStored` is false. `isLate`: it belongs to an earlier window. */
  add(item: unknown, key: unknown, isStored: boolean, isLate: boolean): void;
  close(period: Period): readonly unknown[];
}

class OneWindow implements OpenWindow {
  count = 0;
  private readonly contents: WindowContents;
  private state: unknown;
  private dropped = 0;
  /** Whether all items belong here: none was late for an earlier window. */
  private isExact = true;

  constructor(contents: WindowContents) {
    this.contents = contents;
    this.state = contents.seed();
  }

  add(item: unknown, _key: unknown, isStored: boolean, isLate: boolean): void {
    if (isStored) this.state = this.contents.add(this.state, item);
    else this.dropped += 1;
    if (isLate) this.isExact = false;
    this.count += 1;
  }

  close({ start, end, gaps, lacks }: Period): readonly object[] {
    const { count, dropped, isExact } = this;
    const ofContents = gaps.length > 0 ? 'gap' : isExact ? (dropped > 0 ? 'overflow' : undefined) : 'late';
    const reason = ofContents ?? lacks;
    const facts: WindowFacts = { type: 'window', start, end, count, gaps, complete: reason === undefined };
    return [{ ...facts, ...(reason && { reason }), ...this.contents.fields(this.state, dropped) }];
  }
}

class WindowsByKey implements OpenWindow {
  count = 0;
  private readonly contents: WindowContents;
  private readonly maxKeys: number;
  private readonly windows = new Map<unknown, OneWindow>();
  private beyondMaxKeys = 0;

  constructor(contents: WindowContents, maxKeys: number) {
    this.contents = contents;
    this.maxKeys = maxKeys;
  }

  add(item: unknown, key: unknown, isStored: boolean, isLate: boolean): void {
    let window = this.windows.get(key);
    if (window === undefined) {
      if (this.windows.size === this.maxKeys) {
        this.beyondMaxKeys += 1;
        return;
      }
      window = new OneWindow(this.contents);
      this.windows.set(key, window);
    }
    window.add(item, key, isStored, isLate);
    this.count += 1;
  }

  close(period: Period): readonly object[] {
    const { beyondMaxKeys } = this;
    return [...this.windows].flatMap(([key, window]) =>
      window.close(period).map((closed) => ({ ...closed, key, beyondMaxKeys })),
    );
  }
}
