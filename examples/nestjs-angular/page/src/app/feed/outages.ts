import type { RelayedEvent } from 'rx-trade-feed/browser';
import { type Failure, type Gap, isOfPage } from './failure';
import type { ServerHistory } from './server-history';

/** An event of the feed that isn't a frame. */
export type FeedEvent = Exclude<RelayedEvent, { type: 'frame' }>;

/** Measures outages, from the end of a connection to the next one. The whole page shows these figures. */
export class Outages {
  /** The number of outages that are over. */
  gaps = 0;
  /** How long these lasted, in ms. */
  lostMs = 0;
  /** The current outage. */
  down: { readonly from: number; readonly failure: Failure } | undefined;
  private lostUntil = -Infinity;

  /** Starts with the history of the server. */
  begin({ totals, down, until }: ServerHistory): void {
    [this.gaps, this.lostMs, this.down] = [totals.gaps, totals.lostMs, down];
    this.lostUntil = down?.from ?? until;
  }

  /** Adds an event. Returns the gap that it ended, if any. */
  follow(event: FeedEvent): Gap | undefined {
    switch (event.type) {
      case 'disconnected':
      case 'stopped': {
        const { failure } = event;
        // The relay stores frames while this page is away. If it can't, it sends a gap.
        if (failure.stage === 'stream' && !isOfPage(failure)) this.down ??= { from: failure.endedAt, failure };
        return undefined;
      }
      case 'opened': {
        const { down } = this;
        this.down = undefined;
        return down && this.add({ ...down, to: event.at, durationMs: Math.max(0, event.at - down.from) });
      }
      case 'gap':
        return this.add(event);
      default:
        return undefined;
    }
  }

  // The feed and the relay can report the same outage. It counts once.
  private add(gap: Gap): Gap | undefined {
    const from = Math.max(gap.from, this.lostUntil);
    if (gap.to <= from) return undefined;
    this.gaps += 1;
    this.lostMs += gap.to - from;
    this.lostUntil = gap.to;
    return { ...gap, from, durationMs: gap.to - from };
  }
}
