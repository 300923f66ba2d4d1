import type { ClusterLifecycleEvent, Gap } from '../../protocol/event.js';
import type { FailureCode } from '../../protocol/failures/failure-code.js';
import { afterEvent, afterItem, isOfRelay, noOutages, type Outages } from '../../protocol/outage.js';
import { bytesOf, isLifecycle, timeOf } from './item.js';

/** The figures of a feed: of one period, and since the subscription. */
export interface FeedStats {
  readonly type: 'stats';
  /** When the period began, in epoch ms. */
  readonly from: number;
  /** When the period ended, in epoch ms. */
  readonly to: number;
  /** Frames of this period. */
  readonly frames: number;
  /** Bytes of this period. */
  readonly bytes: number;
  readonly framesPerSecond: number;
  readonly bytesPerSecond: number;
  /** Frames since the subscription. */
  readonly totalFrames: number;
  /** Bytes since the subscription. */
  readonly totalBytes: number;
  /** Outages that began or ended since the subscription. */
  readonly gaps: number;
  /** How long these outages lasted, in ms, in full. An outage that is not over counts up to the last watermark, or to now if there is none. */
  readonly lostMs: number;
  /** Reconnects since the subscription, by the code of the failure before each. */
  readonly reconnects: Readonly<Partial<Record<FailureCode, number>>>;
  /** Values that bounded operators have reported as dropped since the subscription, and frames that a relay skipped. */
  readonly dropped: number;
}

/** Counts the events and items of one subscription. */
export class FeedTally {
  #from: number;
  #frames = 0;
  #bytes = 0;
  #totalFrames = 0;
  #totalBytes = 0;
  #gaps = 0;
  #lostMs = 0;
  #outages: Outages = noOutages;
  /** When the last gap ended, in epoch ms. A time that two gaps cover counts once. */
  #lostUntil = -Infinity;
  #newestAt: number | undefined;
  /** The last watermark, in epoch ms. An outage that is not over has lasted at least until then. */
  #watermark: number | undefined;
  #reconnects: Partial<Record<FailureCode, number>> = {};
  #dropped = 0;

  constructor(now: number) {
    this.#from = now;
  }

  /** Counts an event or an item. */
  count(event: unknown): void {
    if (isLifecycle(event)) return this.#follow(event);
    this.#frames += 1;
    this.#bytes += bytesOf(event);
    const at = timeOf(event);
    if (at === undefined) return;
    this.#newestAt = at;
    this.#know(afterItem(this.#outages, at));
  }

  /** Counts values that were dropped. */
  drop(dropped: number): void {
    this.#dropped += dropped;
  }

  /** Ends the period, begins the next one, and returns the figures. */
  read(now: number): FeedStats {
    const from = this.#from;
    const frames = this.#frames;
    const bytes = this.#bytes;
    const seconds = (now - from) / 1_000;
    const { current, unconfirmed } = this.#outages;
    // While the connection to a relay is down, the status of the feed is unknown, so no outage is counted.
    const outage = current && !isOfRelay(current) ? current : undefined;
    const openFrom = unconfirmed?.from ?? outage?.from;
    this.#totalFrames += frames;
    this.#totalBytes += bytes;
    [this.#from, this.#frames, this.#bytes] = [now, 0, 0];
    return {
      type: 'stats',
      from,
      to: now,
      frames,
      bytes,
      framesPerSecond: seconds > 0 ? frames / seconds : 0,
      bytesPerSecond: seconds > 0 ? bytes / seconds : 0,
      totalFrames: this.#totalFrames,
      totalBytes: this.#totalBytes,
      gaps: this.#gaps + (openFrom === undefined ? 0 : 1),
      lostMs:
        this.#lostMs +
        (openFrom === undefined ? 0 : this.#newlyLostMs(openFrom, unconfirmed?.to ?? this.#watermark ?? now)),
      reconnects: { ...this.#reconnects },
      dropped: this.#dropped,
    };
  }

  #follow(event: ClusterLifecycleEvent): void {
    this.#know(afterEvent(this.#outages, event, this.#newestAt));
    if (event.type === 'watermark') this.#watermark = event.at;
    else this.#newestAt = timeOf(event);
    if (event.type === 'gap') this.#dropped += event.missed ?? 0;
    else if (event.type === 'disconnected' && event.failure.verdict !== 'stop') {
      const { code } = event.failure;
      this.#reconnects[code] = (this.#reconnects[code] ?? 0) + 1;
    }
  }

  #know(outages: Outages): void {
    if (outages === this.#outages) return;
    this.#outages = outages;
    for (const gap of outages.gaps) this.#countGap(gap);
  }

  #countGap({ from, to }: Gap): void {
    // The feed and the relay can report the same outage.
    const isAnother = from >= this.#lostUntil;
    if (isAnother) this.#gaps += 1;
    this.#lostMs += this.#newlyLostMs(from, to);
    this.#lostUntil = Math.max(this.#lostUntil, to);
  }

  #newlyLostMs(from: number, to: number): number {
    return Math.max(0, to - Math.max(from, this.#lostUntil));
  }
}
