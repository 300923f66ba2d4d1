import { type Failure, type Gap, isStop } from './failure';
import { counted, duration, headline, observed, time, whatToDo } from './words';

/** An entry of the log. */
export interface LogEntry {
  readonly id: number;
  /** When it began, in epoch ms. */
  readonly at: number;
  readonly kind: 'open' | 'outage' | 'loss' | 'stop';
  readonly title: string;
  /** The close code or the HTTP status. */
  readonly observed: string | undefined;
  readonly details: readonly string[];
  /** The end of an outage or a stop, in epoch ms; `undefined` before that. */
  readonly until: number | undefined;
}

/** An event of the stream, or one that the server stored. */
export type LogEvent =
  | { readonly type: 'opened'; readonly at: number; readonly feed: string; readonly connection: number }
  | { readonly type: 'disconnected' | 'stopped'; readonly at: number; readonly failure: Failure }
  | ({ readonly type: 'gap' } & Gap)
  | { readonly type: 'restart-requested'; readonly at: number };

const maxEntries = 200;

/** Lists the events of the feed, newest first. An outage is one entry, from the first failure to the next connection. */
export class FeedLog {
  private entries: readonly LogEntry[] = [];
  private lastId = 0;
  private wasOpen = false;
  private from: number;

  /** @param since - the start of the time that the log covers, in epoch ms */
  constructor(since: number) {
    this.from = since;
  }

  /** The entries, newest first. */
  get list(): readonly LogEntry[] {
    return this.entries;
  }

  /** The start of the time that the log covers, in epoch ms. */
  get since(): number {
    return this.from;
  }

  /** Adds an event. */
  record(event: LogEvent): void {
    switch (event.type) {
      case 'opened':
        return this.open(event.at, 'A new connection is open.');
      case 'disconnected':
      case 'stopped':
        return event.type === 'stopped' || isStop(event.failure) ? this.stop(event.failure) : this.fail(event.failure);
      case 'gap':
        return this.miss(event);
      case 'restart-requested':
        if (this.ongoing) this.detail(`Restart requested at ${time(event.at)}.`);
        return;
    }
  }

  /** Records that the stream continues where it was: no frame is missing. */
  resume(at: number): void {
    this.open(at, 'Nothing was missed.');
  }

  private open(at: number, words: string): void {
    if (this.ongoing) this.amend((entry) => ({ ...entry, until: at, details: [...entry.details, words] }));
    else this.add({ at, kind: 'open', title: this.wasOpen ? 'Connected again' : 'Connected', details: [words] });
    this.wasOpen = true;
  }

  private fail(failure: Failure): void {
    const title = headline(failure);
    if (this.ongoing?.kind === 'stop' && this.ongoing.title === title) return;
    if (this.ongoing) this.amend((entry) => ({ ...entry, details: afterAttempt(entry.details, title) }));
    else this.add({ at: failure.endedAt, kind: 'outage', title, observed: observed(failure), details: [] });
  }

  /** Records a stop. Each check of the relay reports the same stop again; only the first one is recorded. */
  private stop(failure: Failure): void {
    const title = headline(failure);
    const { ongoing } = this;
    if (ongoing?.kind === 'stop' && ongoing.title === title) return;
    const stopped = { kind: 'stop', title, observed: observed(failure), details: [whatToDo(failure)] } as const;
    if (ongoing === undefined) this.add({ ...stopped, at: failure.endedAt });
    else {
      const began = ongoing.kind === 'stop' ? [] : [`It began with: ${ongoing.title}`];
      this.amend((entry) => ({ ...entry, ...stopped, details: [...began, ...stopped.details] }));
    }
  }

  private miss({ from, to, durationMs, missed }: Gap): void {
    const words = missed === undefined ? 'Frames of that time are lost.' : `${counted(missed, 'frame')} missed.`;
    const { latest } = this;
    if (latest?.until !== undefined && latest.at <= to && latest.until > from) {
      // Log and totals show the same duration: the one of the gap.
      this.amend((entry) => ({ ...entry, at: from, until: to, details: [...entry.details, words] }));
    } else {
      // A gap may be a single moment.
      const lost = `Frames${durationMs > 0 ? ` of ${duration(durationMs)}` : ''} did not reach this page.`;
      const details = missed === undefined ? [lost] : [lost, words];
      this.add({ at: to, kind: 'loss', title: 'Frames are missing', details });
    }
  }

  private add(
    entry: Pick<LogEntry, 'at' | 'kind' | 'title' | 'details'> & { readonly observed?: string | undefined },
  ): void {
    const added = { observed: undefined, until: undefined, ...entry, id: (this.lastId += 1) };
    const entries = [added, ...this.entries];
    this.entries = entries.slice(0, maxEntries);
    if (entries.length > maxEntries) this.from = (this.entries.at(-1) as LogEntry).at;
  }

  /** The newest outage or stop; `undefined` if the feed was opened after it. */
  private get latest(): LogEntry | undefined {
    const entry = this.entries.find(({ kind }) => kind !== 'loss');
    return entry?.kind === 'open' ? undefined : entry;
  }

  private get ongoing(): LogEntry | undefined {
    return this.latest?.until === undefined ? this.latest : undefined;
  }

  private detail(words: string): void {
    this.amend((entry) => ({ ...entry, details: [...entry.details, words] }));
  }

  private amend(change: (entry: LogEntry) => LogEntry): void {
    const { latest } = this;
    this.entries = this.entries.map((entry) => (entry === latest ? change(entry) : entry));
  }
}

/** Adds a failed attempt to the details. A repeated failure increases a count. */
const afterAttempt = (details: readonly string[], words: string): readonly string[] => {
  const last = details.at(-1);
  const times = /^Tried (\d+) times: (.*)$/.exec(last ?? '');
  if (times?.[2] === words) return [...details.slice(0, -1), `Tried ${Number(times[1]) + 1} times: ${words}`];
  return last === `Tried again: ${words}`
    ? [...details.slice(0, -1), `Tried 2 times: ${words}`]
    : [...details, `Tried again: ${words}`];
};
