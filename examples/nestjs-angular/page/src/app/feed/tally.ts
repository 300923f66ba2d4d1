import { type Failure, isStop } from './failure';
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
  private stoppedBy: Failure['code'] | undefined;

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

  /** Counts what an event tells. */
  follow(event: Happening): void {
    if (event.type === 'gap') this.dropped += event.missed ?? 0;
    else if (event.type === 'opened' || event.type === 'ticket-requested') this.stoppedBy = undefined;
    else if (event.type === 'disconnected') this.reconnect(event.failure);
  }

  /** Gives the sums. */
  read({ gaps, lostMs, down }: Outages): Totals {
    const { since, frames, bytes, dropped, reconnects } = this;
    return { since, frames, bytes, gaps, lostMs, downSince: down?.from, dropped, reconnects: { ...reconnects } };
  }

  // While the feed is stopped, the page looks at the relay: that is no reconnect of the feed.
  private reconnect(failure: Failure): void {
    const { code } = failure;
    if (isStop(failure)) this.stoppedBy = code;
    else if (code !== this.stoppedBy) this.reconnects[code] = (this.reconnects[code] ?? 0) + 1;
  }
}
