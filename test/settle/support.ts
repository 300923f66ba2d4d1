import { type Observable, Subject, VirtualTimeScheduler } from 'rxjs';
import type { ClusterLifecycleEvent, FeedEvent } from '../../src/protocol/event.js';
import type { Frame } from '../../src/protocol/frame.js';
import type { LedgerEntry, LedgerStep, Outcome } from '../../src/settle/outcome.js';
import type { SettleOptions } from '../../src/settle/settle-options.js';
import { settle } from '../../src/settle/settle.js';
import { frameOf, opened, watermark } from '../operators/stream.js';

export type Step = LedgerStep<string> | ClusterLifecycleEvent;
export type Options = Partial<SettleOptions<Frame, string, string>>;

/** Trades of the same slot differ only in case. */
export const entries = (keys: string): readonly LedgerEntry<string>[] =>
  [...keys].map((key) => ({ key, slot: key.toLowerCase() }));

export const stepOf = (at: number, confirmed: string, more: Partial<LedgerStep<string>> = {}): LedgerStep<string> => ({
  type: 'ledger',
  at,
  confirmed: entries(confirmed),
  ...more,
});

const defaults = {
  key: (frame: Frame) => (/^[a-z]/i.test(frame.text()) ? frame.text() : undefined),
  slot: (frame: Frame) => frame.text().toLowerCase(),
  keep: (frame: Frame) => frame.text(),
  withinMs: 10,
  graceMs: 3,
};

/** Creates a feed and a ledger whose events and clock the test controls. Both begin at 0. */
export const driven = (options: Options = {}, start = 0) => {
  const time = new VirtualTimeScheduler(undefined, start);
  time.frame = start;
  const feed$ = new Subject<FeedEvent>();
  const ledger$ = new Subject<Step>();
  const emitted: (ClusterLifecycleEvent | Outcome<string, string>)[] = [];
  const ends: string[] = [];
  const settled$: Observable<ClusterLifecycleEvent | Outcome<string, string>> = feed$.pipe(
    settle(ledger$, { ...defaults, scheduler: time, ...options }),
  );
  const subscription = settled$.subscribe({
    next: (event) => emitted.push(event),
    error: (error: unknown) => ends.push(String(error)),
    complete: () => ends.push('complete'),
  });
  const passTo = (at: number): void => {
    time.maxFrames = at;
    time.flush();
    time.frame = at;
  };
  const feed = (at: number, ...texts: readonly string[]): void => {
    passTo(at);
    for (const text of texts) feed$.next(frameOf(text, at));
  };
  const ledger = (at: number, confirmed = '', more: Partial<LedgerStep<string>> = {}): void => {
    passTo(at);
    ledger$.next(stepOf(at, confirmed, more));
    ledger$.next(watermark(at));
  };
  /** Opens both sides at `at`. */
  const open = (at: number): void => {
    passTo(at);
    feed$.next(opened(at));
    ledger$.next(opened(at));
    ledger$.next(watermark(at));
  };
  const outcomes = () => emitted.filter((event) => event.type === 'outcome');
  return {
    feed$,
    ledger$,
    settled$,
    emitted,
    ends,
    subscription,
    passTo,
    feed,
    ledger,
    open,
    outcomes,
    lines: () => outcomes().map(inWords),
  };
};

/** Writes an outcome as text: when, what, which trade, and what it corrects. */
export const inWords = (outcome: Outcome<unknown, string>): string => {
  const { at, state, key, previous } = outcome;
  const lead = () => ('leadMs' in outcome ? ` ${outcome.leadMs}${outcome.late ? ' late' : ''}` : '');
  const more = {
    confirmed: lead,
    failed: lead,
    replaced: () => (outcome.state === 'replaced' ? ` by ${outcome.by}` : ''),
    unknown: () => (outcome.state === 'unknown' ? ` ${outcome.because.side} ${outcome.because.why}` : ''),
    expired: () => '',
    reorged: () => '',
    unseen: () => '',
  }[state]();
  return `${at} ${state} ${key}${more}${previous === undefined ? '' : `, was ${previous.state}`}`;
};

/** Reads scenarios: a title, with options in brackets, and below it what happens and what comes of it. */
export const scenarios = (text: string) =>
  text
    .trim()
    .split(/\n(?! )/)
    .map((each) => {
      const [title = '', happens = '', ...lines] = each.split(/\n +/);
      const options = /\((\w+(?: \d+)?(?:, \w+(?: \d+)?)*)\)$/.exec(title)?.[1]?.split(', ') ?? [];
      const entries = options.map((option) => option.split(' ')).map(([name, value]) => [name, Number(value ?? 1)]);
      return [title, happens, lines.join(' '), Object.fromEntries(entries) as Record<string, number>] as const;
    });
