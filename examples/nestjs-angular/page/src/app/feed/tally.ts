import type { Failure } from './failure';
import type { FeedEvent, Outages } from './outages';
import type { ServerHistory } from './server-history';

/** The totals that the page shows. */
export interface Totals {
  /** The start of the count, in epoch ms. */
  readonly since: number;
  readonly frames: number;
  readonly bytes: number;
  /** The number of outages that are over. */
  readonly gaps: number;
  /** How long these lasted, in ms. */
  readonly lostMs: number;
  /** The start of the current outage, in epoch ms. */
  readonly downSince: number | undefined;
  /** The frames that didn't reach this page since it was loaded. */
  readonly dropped: number;
  /** The reconnects, by the code of the failure before each. */
  readonly reconnects: Readonly<Record<string, number>>;
}

/** Counts frames and reconnects, starting with the counts of the server. */
export class Tally {
  private since = Date.now();
  private frames = 0;
  private bytes = 0;
  private dropped = 0;
  private reconnects: Record<string, number> = {};

  /** Starts with the counts of the server. */
  begin({ since, totals }: ServerHistory): void {
    this.since = since;
    [this.frames, this.bytes, this.reconnects] = [totals.frames, totals.bytes, { ...totals.reconnects }];
  }

  /** Counts a frame. */
  count(bytes: number): void {
    this.frames += 1;
    this.bytes += bytes;
  }

  /**
   * Counts an event.
   *
   * @param stop - the failure that stopped the feed, while it is stopped. The page then checks the relay, which doesn't count as a reconnect
   */
  follow(event: FeedEvent, stop: Failure | undefined): void {
    if (event.type === 'gap') this.dropped += event.missed ?? 0;
    if (event.type !== 'disconnected') return;
    const { code } = event.failure;
    if (code !== stop?.code) this.reconnects[code] = (this.reconnects[code] ?? 0) + 1;
  }

  /** Returns the totals. */
  read({ gaps, lostMs, down }: Outages): Totals {
    const { since, frames, bytes, dropped, reconnects } = this;
    return { since, frames, bytes, gaps, lostMs, downSince: down?.from, dropped, reconnects: { ...reconnects } };
  }
}
