import { asyncScheduler } from 'rxjs';
import {
  aFunction,
  aScheduler,
  checkRequired,
  durationMs,
  oneOf,
  positiveCount,
  type Rule,
  validated,
} from '../../protocol/validate.js';
import { withOwnBytes } from '../items/item.js';
import type { Accumulator, IncompleteReason, KeyOptions, WindowFacts } from './window.js';

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

type Limits = Pick<typeof windowDefaults, 'maxFrames' | 'maxKeys'>;
type ContentsOptions = Limits & Partial<Accumulator<unknown, unknown> & Pick<KeyOptions<unknown, unknown>, 'by'>>;

/** Says how a window stores its items: its state is a list of them, or the value of an accumulator. */
export interface WindowContents extends Accumulator<unknown, unknown> {
  /** Prepares an item to be stored. */
  readonly keep: (item: unknown) => unknown;
  /** How many items a window can add. */
  readonly limit: number;
  /** Returns the fields of a window from its state. */
  readonly fields: (state: unknown, dropped: number) => object;
  /** Returns the key of an item, if each key has a window. */
  readonly by: ((item: unknown) => unknown) | undefined;
  readonly maxKeys: number;
}

const contentsOf = ({ seed, add, by, maxFrames, maxKeys }: ContentsOptions): WindowContents =>
  seed && add
    ? { by, maxKeys, seed, add, limit: Infinity, keep: (item) => item, fields: (value) => ({ value }) }
    : {
        by,
        maxKeys,
        seed: () => [],
        add: (frames, item) => {
          (frames as unknown[]).push(item);
          return frames;
        },
        limit: maxFrames,
        keep: withOwnBytes,
        fields: (frames, dropped) => ({ frames, dropped }),
      };

/** When a window began and ended, and why it's incomplete whatever its items are (`lacks`). */
type Period = Pick<WindowFacts, 'start' | 'end' | 'gaps'> & { readonly lacks: IncompleteReason | undefined };

/** The items of one key. */
interface Part {
  state: unknown;
  count: number;
  dropped: number;
  /** Whether all items belong here: none was late for an earlier window. */
  isExact: boolean;
}

/** The open window of a period: a part for each of its keys, or a single one. */
export class OpenWindow {
  /** The number of items, including dropped ones. */
  count = 0;
  private readonly contents: WindowContents;
  private readonly parts = new Map<unknown, Part>();
  /** The key of the last item and its part: many items in a row have the same key. */
  private key: unknown = undefined;
  private part: Part | undefined;
  private beyondMaxKeys = 0;

  constructor(contents: WindowContents) {
    this.contents = contents;
    this.part = contents.by ? undefined : this.addPart(undefined);
  }

  /** Adds an item, or only counts it if `isStored` is false. `isLate`: it belongs to an earlier window. */
  add(item: unknown, key: unknown, isStored: boolean, isLate: boolean): void {
    const part = this.part !== undefined && key === this.key ? this.part : this.find(key);
    if (part === undefined) {
      this.beyondMaxKeys += 1;
      return;
    }
    if (isStored) part.state = this.contents.add(part.state, item);
    else part.dropped += 1;
    if (isLate) part.isExact = false;
    part.count += 1;
    this.count += 1;
  }

  close({ start, end, gaps, lacks }: Period): readonly object[] {
    const { contents, beyondMaxKeys } = this;
    return Array.from(this.parts, ([key, { state, count, dropped, isExact }]) => {
      const ofItems = isExact ? dropped > 0 && 'overflow' : 'late';
      const reason = (gaps.length > 0 && 'gap') || ofItems || lacks;
      const facts: WindowFacts = { type: 'window', start, end, count, gaps, complete: reason === undefined };
      const ofKey = contents.by && { key, beyondMaxKeys };
      return { ...facts, ...(reason && { reason }), ...contents.fields(state, dropped), ...ofKey };
    });
  }

  private find(key: unknown): Part | undefined {
    const found = this.parts.get(key) ?? (this.parts.size < this.contents.maxKeys ? this.addPart(key) : undefined);
    [this.key, this.part] = [key, found];
    return found;
  }

  private addPart(key: unknown): Part {
    const part = { state: this.contents.seed(), count: 0, dropped: 0, isExact: true };
    this.parts.set(key, part);
    return part;
  }
}
