import { computed, effect, Injectable, signal, untracked } from '@angular/core';
import { type FeedStatus, injectTradeFeed } from 'rx-trade-feed/angular';
import type { FeedStats } from 'rx-trade-feed/operators';
import type { RelayedEvent, TradeFeedError } from 'rx-trade-feed/browser';
import { FeedLog } from './feed-log';
import { FrameRing } from './frame-ring';
import { History } from './history';
import { type Latency, LatencyTally } from './latency';

/** How it stands with the feed, as a person would say it in a word. */
export type FeedState = FeedStatus['state'];

const keptFrames = 2_000;
const keptMs = 15 * 60_000;
/** The list of frames and the like follow five times a second: more often nobody reads it. */
const shownEveryMs = 200;
/** A rate over less than this, in seconds, says nothing. */
const shortestSampleS = 0.2;

/**
 * Follows the feed for the whole page, and holds what the page shows.
 *
 * Frames go into plain objects here: no signal is set and nothing is rendered for one of them. What the page shows changes in steps.
 */
@Injectable({ providedIn: 'root' })
export class Monitor {
  private readonly feed = injectTradeFeed();
  private readonly latencies = new LatencyTally();
  private readonly log = new FeedLog();
  private readonly steps = signal(0);
  private readonly logged = signal(this.log.list);
  private readonly latencyNow = signal<Latency | undefined>(undefined);
  private readonly samples = signal(0);
  private readonly feedName = signal<string | undefined>(undefined);
  private isOpen = false;
  private openSince = 0;
  private downSince = 0;
  private sampledUntil = Date.now();
  /** How long the feed was open before it was lost in the second that goes on. */
  private openMs = 0;
  private isStepDue = false;

  /** When the page was loaded, in epoch ms. */
  readonly loadedAt = Date.now();
  readonly ring = new FrameRing(keptFrames);
  readonly history = new History(keptMs);
  readonly status = this.feed.status;
  readonly stats = this.feed.stats;
  /** Which feed it is, once it is known. */
  readonly name = this.feedName.asReadonly();
  /** What happened, newest first. */
  readonly entries = this.logged.asReadonly();
  /** Of the last second. */
  readonly latency = this.latencyNow.asReadonly();
  /** Changes when there are new frames to show. */
  readonly step = this.steps.asReadonly();
  /** Changes when there is a new sample in the history. */
  readonly sampled = this.samples.asReadonly();
  readonly state = computed(() => this.status().state);

  constructor() {
    this.feed.events$.subscribe((event) => (event.type === 'frame' ? this.take(event) : this.hear(event)));
    effect(() => {
      const stats = this.stats();
      if (stats) untracked(() => this.sample(stats));
    });
    // Somebody may have started it again in another tab. To look costs nobody a connection: the relay says at once how it stands.
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible' && this.state() === 'stopped') this.feed.restart();
    });
  }

  /** Begins again after a stop. */
  restart(): void {
    this.log.note(Date.now(), 'Asked to connect again');
    this.logged.set(this.log.list);
    // The relay never begins again by itself: it would evict another client. A person who asks may.
    void fetch('/feed/restart', { method: 'POST' })
      // Then the feed says by itself what is wrong.
      .catch(() => undefined)
      .finally(() => this.feed.restart());
  }

  private take(frame: Extract<RelayedEvent, { type: 'frame' }>): void {
    if (!this.isOpen) this.resume(frame.receivedAt);
    this.ring.push(frame);
    this.latencies.add(Date.now() - frame.receivedAt);
    if (this.isStepDue) return;
    this.isStepDue = true;
    setTimeout(() => requestAnimationFrame(() => this.show()), shownEveryMs);
  }

  private show(): void {
    this.isStepDue = false;
    if (this.feedName() === undefined) this.feedName.set(this.ring.row(this.ring.newest)?.frame.feed);
    this.steps.update((step) => step + 1);
  }

  private hear(event: Exclude<RelayedEvent, { type: 'frame' }>): void {
    if (event.type === 'opened') {
      this.open(event.at);
      this.feedName.set(event.feed);
      this.history.end(event.at);
    } else if (event.type === 'disconnected') this.lose(event.failure.endedAt);
    else if (event.type === 'stopped') {
      this.lose(event.failure.endedAt);
      // The last event before the feed waits for `restart`.
      return this.stop(event.failure);
    } else if (event.type === 'gap') this.history.miss(event.from, event.to);
    if (this.log.tell(event)) this.logged.set(this.log.list);
  }

  /** A frame came, and nobody had said that the feed was open: the page joined late, or went on where it was. */
  private resume(at: number): void {
    this.open(at);
    this.history.end(at, true);
    this.log.resume(at);
    this.logged.set(this.log.list);
  }

  private open(at: number): void {
    this.isOpen = true;
    this.openSince = at;
  }

  private lose(at: number): void {
    if (this.isOpen) {
      this.downSince = at;
      this.openMs += Math.max(0, at - Math.max(this.sampledUntil, this.openSince));
      this.history.begin(at);
    }
    this.isOpen = false;
  }

  private stop(failure: TradeFeedError): void {
    this.log.stop(failure.endedAt, failure);
    this.logged.set(this.log.list);
  }

  private sample({ from, to, frames, bytes }: FeedStats): void {
    const latency = this.latencies.read();
    this.latencyNow.set(latency);
    // Of a second in which the feed was open for a part alone, the rates are those of that part.
    const seconds = (this.isOpen ? this.openMs + to - Math.max(from, this.openSince) : this.openMs) / 1_000;
    const at = this.isOpen ? to : Math.max(from, this.downSince);
    this.openMs = 0;
    if (seconds >= shortestSampleS) {
      this.history.add({ at, framesPerSecond: frames / seconds, bytesPerSecond: bytes / seconds, latency });
    } else if (!this.isOpen) {
      this.history.add({ at: to, framesPerSecond: null, bytesPerSecond: null, latency: undefined });
    }
    this.sampledUntil = to;
    this.samples.update((sample) => sample + 1);
  }
}
