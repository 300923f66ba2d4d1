import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';
import { filter, retry, take } from 'rxjs';
import type { FeedEvent } from 'rx-trade-feed';
import { TradeFeed } from 'rx-trade-feed/nestjs';
import type { Down, HistoryAnswer, HistoryEvent } from './history-answer.js';
import { SecondCounts } from './second-counts.js';

const storedMs = 15 * 60_000;
const maxEvents = 1_000;

/** Stores the events and counts of the last 15 minutes, for pages that are loaded later. */
@Injectable()
export class FeedHistory implements OnApplicationBootstrap {
  private readonly tradeFeed: TradeFeed;
  private readonly since = Date.now();
  private readonly counts = new SecondCounts(storedMs);
  private readonly reconnects: Record<string, number> = {};
  private events: readonly HistoryEvent[] = [];
  private openedAt: number | undefined;
  private down: (Down & { readonly begin: HistoryEvent }) | undefined;
  private gaps = 0;
  private lostMs = 0;
  private changedAt = 0;
  /** The time from which no event was dropped. */
  private eventsSince = this.since;

  constructor(tradeFeed: TradeFeed) {
    this.tradeFeed = tradeFeed;
  }

  onApplicationBootstrap(): void {
    const { events$, status$ } = this.tradeFeed;
    // A new subscription to `events$` after a stop would restart the feed. `status$` reports when a person has restarted it.
    const restarted$ = status$.pipe(
      filter(({ state }) => state !== 'stopped'),
      take(1),
    );
    events$.pipe(retry({ delay: () => restarted$ })).subscribe((event) => this.follow(event));
  }

  /** Records that a person requested a restart. */
  restartRequested(): void {
    this.record({ type: 'restart-requested', at: Date.now() });
  }

  /** Returns the history for a page. */
  async answer(): Promise<HistoryAnswer> {
    // More events of this millisecond may follow. The page would then count the earlier ones twice.
    while (this.changedAt === Date.now()) await setTimeout(1);
    const until = Date.now();
    const { frames, bytes, seconds } = this.counts.before(until);
    const { since, openedAt, down, gaps, lostMs } = this;
    const events = this.events.filter((event) => timeOf(event) >= until - storedMs);
    return {
      until,
      since,
      openedAt,
      totals: { frames, bytes, gaps, lostMs, reconnects: { ...this.reconnects } },
      down: down && { from: down.from, failure: down.failure },
      seconds,
      eventsSince: Math.max(this.eventsSince, until - storedMs),
      // The current outage may have begun before the stored time. The page needs its first event.
      events: down === undefined || events.includes(down.begin) ? events : [down.begin, ...events],
    };
  }

  private follow(event: FeedEvent): void {
    switch (event.type) {
      case 'frame':
        this.counts.add(event.receivedAt, event.data.length, Date.now() - event.receivedAt);
        return;
      case 'opened':
        this.openedAt ??= event.at;
        this.record(event);
        this.end(event.at);
        return;
      case 'disconnected':
        this.reconnects[event.failure.code] = (this.reconnects[event.failure.code] ?? 0) + 1;
        this.fail(event);
        return;
      case 'stopped':
        this.fail(event);
        return;
      default:
    }
  }

  private fail({ type, at, failure: observed }: Extract<FeedEvent, { type: 'disconnected' | 'stopped' }>): void {
    const failure = observed.toPublic().toJSON();
    const event = { type, at, failure };
    // An outage begins with the end of a connection; the failed attempts after it are part of it.
    if (observed.stage === 'stream') this.down ??= { from: observed.endedAt, failure, begin: event };
    this.record(event);
  }

  private end(to: number): void {
    if (this.down === undefined) return;
    const { from, failure } = this.down;
    const durationMs = Math.max(0, to - from);
    this.down = undefined;
    this.gaps += 1;
    this.lostMs += durationMs;
    this.record({ type: 'gap', from, to, durationMs, failure });
  }

  private record(event: HistoryEvent): void {
    this.changedAt = Date.now();
    const oldest = this.changedAt - storedMs;
    const events = [...this.events.filter((known) => timeOf(known) >= oldest), event];
    this.events = events.slice(-maxEvents);
    if (events.length > maxEvents) this.eventsSince = timeOf(this.events[0] as HistoryEvent);
  }
}

const timeOf = (event: HistoryEvent): number => (event.type === 'gap' ? event.to : event.at);
