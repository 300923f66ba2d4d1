import type { RelayedEvent, TradeFeedError } from 'rx-trade-feed/browser';
import { counted, duration, headline, observed, whatToDo } from './words';

/** What happened, in plain words. */
export interface LogEntry {
  readonly id: number;
  /** When it began, in epoch ms. */
  readonly at: number;
  readonly kind: 'open' | 'outage' | 'loss' | 'stop' | 'note';
  readonly title: string;
  /** The close code and its reason, or the HTTP status. */
  readonly observed: string | undefined;
  readonly details: readonly string[];
  /** Of an outage or a stop: when it was over, in epoch ms; `undefined` while it goes on. */
  readonly until: number | undefined;
}

const kept = 200;

/** Tells the feed's life as a list, newest first: an outage is one entry, from the first failure to the connection after it. */
export class FeedLog {
  private entries: readonly LogEntry[] = [];
  private made = 0;
  private wasOpen = false;

  /** Newest first. */
  get list(): readonly LogEntry[] {
    return this.entries;
  }

  /** Takes note of an event. Says whether the list has changed. */
  tell(event: Exclude<RelayedEvent, { type: 'frame' }>): boolean {
    switch (event.type) {
      case 'disconnected':
        this.fail(event.at, event.failure);
        return true;
      case 'reconnecting':
        return false;
      case 'opened':
        this.open(event.at, `Connection ${event.connection} is open.`);
        return true;
      case 'gap': {
        const missed =
          event.missed === undefined
            ? 'Frames of that time are not sent again.'
            : `${counted(event.missed, 'frame')} missed.`;
        if (event.failure.code === 'relay-behind')
          this.add({
            at: event.to,
            kind: 'loss',
            title: 'Frames are missing',
            observed: undefined,
            details: [
              `Those of ${duration(event.durationMs)} did not reach this page.`,
              ...(event.missed === undefined ? [] : [missed]),
            ],
          });
        else this.amend((entry) => ({ ...entry, details: [...entry.details, missed] }));
        return true;
      }
      case 'ticket-requested':
      case 'ticket-issued':
      case 'watermark':
      // The monitor shows it by `stop`.
      case 'stopped':
        return false;
    }
  }

  /** The feed goes on where it was: nothing is missing. */
  resume(at: number): void {
    this.open(at, 'Nothing was missed.');
  }

  /** The feed has stopped. Told again, of the stop that goes on, it is no news. */
  stop(at: number, failure: TradeFeedError): void {
    const { current } = this;
    if (current?.kind === 'stop' && current.until === undefined && current.title === headline(failure)) return;
    this.amend((entry) => ({ ...entry, until: entry.until ?? at }));
    this.add({ at, kind: 'stop', title: headline(failure), observed: observed(failure), details: [whatToDo(failure)] });
  }

  /** Something else that is worth a line. */
  note(at: number, title: string): void {
    this.wasOpen = false;
    this.add({ at, kind: 'note', title, observed: undefined, details: [] });
  }

  private open(at: number, words: string): void {
    const { current } = this;
    if (current?.kind === 'outage' && current.until === undefined) {
      this.amend((entry) => ({ ...entry, until: at, details: [...entry.details, words] }));
    } else {
      this.entries = this.entries.map((entry) =>
        entry.kind === 'stop' && entry.until === undefined ? { ...entry, until: at } : entry,
      );
      this.add({
        at,
        kind: 'open',
        title: this.wasOpen ? 'Connected again' : 'Connected',
        observed: undefined,
        details: [words],
      });
    }
    this.wasOpen = true;
  }

  private fail(at: number, failure: TradeFeedError): void {
    const { current } = this;
    // Who looks whether a stop is over is told of its beginning again.
    if (current?.kind === 'stop' && current.until === undefined) return;
    if (current?.kind !== 'outage' || current.until !== undefined) {
      const title = headline(failure);
      this.add({ at, kind: 'outage', title, observed: observed(failure), details: [] });
    } else this.amend((entry) => ({ ...entry, details: afterAttempt(entry.details, headline(failure)) }));
  }

  private add(entry: Omit<LogEntry, 'id' | 'until'>): void {
    this.entries = [{ ...entry, id: (this.made += 1), until: undefined }, ...this.entries].slice(0, kept);
  }

  /** The newest entry, but for what is missing: that is told in the middle of an outage as well, by a relay that was started anew. */
  private get current(): LogEntry | undefined {
    return this.entries.find(({ kind }) => kind !== 'loss');
  }

  private amend(change: (entry: LogEntry) => LogEntry): void {
    const { current } = this;
    if (current?.kind === 'outage')
      this.entries = this.entries.map((entry) => (entry === current ? change(entry) : entry));
  }
}

/** A further attempt failed: the same failure again is counted, not repeated. */
const afterAttempt = (details: readonly string[], words: string): readonly string[] => {
  const last = details.at(-1);
  const times = /^Tried (\d+) times: (.*)$/.exec(last ?? '');
  if (times?.[2] === words) return [...details.slice(0, -1), `Tried ${Number(times[1]) + 1} times: ${words}`];
  return last === `Tried again: ${words}`
    ? [...details.slice(0, -1), `Tried 2 times: ${words}`]
    : [...details, `Tried again: ${words}`];
};
