import type { Failure } from './failure';
import type { Happening, Outages } from './outages';
import type { ServerHistory } from './server-history';

/** The sums that the page shows. */
export interface Totals {
  /** Since when they count, in epoch ms. */
  readonly since: number;
  readonly frames: number;
  readonly bytes: number;
  /** Outages that are over. */
  readonly gaps: number;
  /** How long these lasted, in ms. */
  readonly lostMs: number;
  /** Since when an outage goes on, in epoch ms. */
  readonly downSince: number | undefined;
  /** Frames that did not reach this page, since it was loaded. */
  readonly dropped: number;
  /** By the code of the failure before each. */
  readonly reconnects: Readonly<Record<string, number>>;
}

/** Counts what came, on top of what the server has counted. */
export class Tally {
  private since = Date.now();
  private frames = 0;
  private bytes = 0;
  private dropped = 0;
  private reconnects: Record<string, number> = {};

  /** Begins with what the server has counted. */
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
   * Counts what an event tells.
   *
   * @param stop - what has stopped the feed, while it is stopped: then the page looks at the relay, which is no reconnect of the feed
   */
  follow(event: Happening, stop: Failure | undefined): void {
    if (event.type === 'gap') this.dropped += event.missed ?? 0;
    if (event.type !== 'disconnected') return;
    const { code } = event.failure;
    if (code !== stop?.code) this.reconnects[code] = (this.reconnects[code] ?? 0) + 1;
  }

  /** Gives the sums. */
  read({ gaps, lostMs, down }: Outages): Totals {
    const { since, frames, bytes, dropped, reconnects } = this;
    return { since, frames, bytes, gaps, lostMs, downSince: down?.from, dropped, reconnects: { ...reconnects } };
  }
}
