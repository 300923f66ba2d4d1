import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';
import { filter, retry, take } from 'rxjs';
import type { FeedEvent } from 'rx-trade-feed';
import { TradeFeed } from 'rx-trade-feed/nestjs';
import type { Down, HistoryAnswer, HistoryEvent } from './history-answer.js';
import { publicFailure } from './public-failure.js';
import { SecondCounts } from './second-counts.js';

const keptMs = 15 * 60_000;
const keptEvents = 1_000;

/** Keeps what happened in the last 15 minutes, so that a page that is loaded now can show it. */
@Injectable()
export class FeedHistory implements OnApplicationBootstrap {
  private readonly tradeFeed: TradeFeed;
  private readonly since = Date.now();
  private readonly counts = new SecondCounts(keptMs);
  private readonly reconnects: Record<string, number> = {};
  private events: readonly HistoryEvent[] = [];
  private openedAt: number | undefined;
  private down: (Down & { readonly begin: HistoryEvent }) | undefined;
  private gaps = 0;
  private lostMs = 0;
  private changedAt = 0;

  constructor(tradeFeed: TradeFeed) {
    this.tradeFeed = tradeFeed;
  }

  onApplicationBootstrap(): void {
    const { events$, status$ } = this.tradeFeed;
    // A subscriber of `events$` after a stop would begin the feed again; `status$` shows when a person has done so.
    const begun$ = status$.pipe(
      filter(({ state }) => state !== 'stopped'),
      take(1),
    );
    events$.pipe(retry({ delay: () => begun$ })).subscribe((event) => this.follow(event));
  }

  /** Notes that a person asked to connect again. */
  asked(): void {
    this.keep({ type: 'asked', at: Date.now() });
  }

  /** Returns what a page begins with. */
  async answer(): Promise<HistoryAnswer> {
    // More events of this ms may follow, and the page would count those before them again.
    while (this.changedAt === Date.now()) await setTimeout(1);
    const until = Date.now();
    const { frames, bytes, seconds } = this.counts.before(until);
    const { since, openedAt, down, gaps, lostMs } = this;
    const events = this.events.filter((event) => timeOf(event) >= until - keptMs);
    return {
      until,
      since,
      openedAt,
      totals: { frames, bytes, gaps, lostMs, reconnects: { ...this.reconnects } },
      down: down && { from: down.from, failure: down.failure },
      seconds,
      // An outage that is older than what is kept still needs its begin.
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
        this.keep(event);
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

  private fail({ type, at, failure: seen }: Extract<FeedEvent, { type: 'disconnected' | 'stopped' }>): void {
    const failure = publicFailure(seen);
    const event = { type, at, failure };
    // An outage begins with the end of a connection; the failed attempts after it are part of it.
    if (seen.stage === 'stream') this.down ??= { from: seen.endedAt, failure, begin: event };
    this.keep(event);
  }

  private end(to: number): void {
    if (this.down === undefined) return;
    const { from, failure } = this.down;
    const durationMs = Math.max(0, to - from);
    this.down = undefined;
    this.gaps += 1;
    this.lostMs += durationMs;
    this.keep({ type: 'gap', from, to, durationMs, failure });
  }

  private keep(event: HistoryEvent): void {
    this.changedAt = Date.now();
    const oldest = this.changedAt - keptMs;
    this.events = [...this.events.filter((known) => timeOf(known) >= oldest), event].slice(-keptEvents);
  }
}

const timeOf = (event: HistoryEvent): number => (event.type === 'gap' ? event.to : event.at);
