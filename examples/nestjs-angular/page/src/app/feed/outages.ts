import type { RelayedEvent } from 'rx-trade-feed/browser';
import { type Failure, isOfPage } from './failure';
import type { Gap } from './gap';
import type { ServerHistory } from './server-history';

/** Something that happens to the feed, besides its frames. */
export type Happening = Exclude<RelayedEvent, { type: 'frame' }>;

/** Measures the outages: once, from the end of a connection to the next one, for every place of the page that tells of them. */
export class Outages {
  /** Those that are over. */
  gaps = 0;
  lostMs = 0;
  /** The one that is not over. */
  down: { readonly from: number; readonly failure: Failure } | undefined;
  private lostUntil = -Infinity;

  /** Begins with what the server knows. */
  begin({ totals, down, until }: ServerHistory): void {
    [this.gaps, this.lostMs, this.down] = [totals.gaps, totals.lostMs, down];
    this.lostUntil = down?.from ?? until;
  }

  /** Follows an event; returns the gap that ended with it, if one did. */
  follow(event: Happening): Gap | undefined {
    switch (event.type) {
      case 'disconnected':
      case 'stopped': {
        const { failure } = event;
        // The relay holds the frames while this page is away from it, or tells by a gap that it does not.
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

  // Two statements about one outage, of the feed and of the relay, count once.
  private add(gap: Gap): Gap | undefined {
    const from = Math.max(gap.from, this.lostUntil);
    if (gap.to <= from) return undefined;
    this.gaps += 1;
    this.lostMs += gap.to - from;
    this.lostUntil = gap.to;
    return { ...gap, from, durationMs: gap.to - from };
  }
}
