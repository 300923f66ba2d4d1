import { computed, effect, inject, Injectable, signal, untracked } from '@angular/core';
import { filter, switchMap, take } from 'rxjs';
import { type FeedStatus, injectTradeFeed } from 'rx-trade-feed/angular';
import type { RelayedEvent } from 'rx-trade-feed/browser';
import { Clock } from './clock';
import { type Failure, isOfPage, isStop } from './failure';
import { FeedLog, type LogEvent } from './feed-log';
import { FrameRing } from './frame-ring';
import { History, type Rates } from './history';
import { type Latency, LatencyTally } from './latency';
import { type Happening, Outages } from './outages';
import { type ServerHistory, serverHistory$ } from './server-history';
import { Tally, type Totals } from './tally';

/** How it stands with the feed, as a person would say it in a word. */
export type FeedState = FeedStatus['state'];

const keptFrames = 2_000;
const keptMs = 15 * 60_000;
/** The list of frames and the like follow five times a second: more often nobody reads it. */
const shownEveryMs = 200;
/** So long after its end a second is taken as complete, in ms. */
const settledAfterMs = 300;

/**
 * Follows the feed for the whole page, and holds what the page shows.
 *
 * It begins with what the server knows, and goes on with the stream from there. Frames go into plain objects: no signal is set and
 * nothing is rendered for one of them. What the page shows changes in steps.
 */
@Injectable({ providedIn: 'root' })
export class Monitor {
  private readonly feed = injectTradeFeed();
  private readonly clock = inject(Clock);
  private readonly latencies = new LatencyTally();
  private readonly steps = signal(0);
  private readonly latencyNow = signal<Latency | undefined>(undefined);
  private readonly ratesNow = signal<Rates | undefined>(undefined);
  private readonly samples = signal(0);
  private readonly feedName = signal<string | undefined>(undefined);
  private readonly stopBy = signal<Failure | undefined>(undefined);
  private readonly asked = signal(false);
  private log = new FeedLog();
  private outages = new Outages();
  private tally = new Tally();
  private readonly logged = signal(this.log.list);
  private readonly counted = signal<Totals>(this.tally.read(this.outages));
  /** What came before the server told what it knows; `undefined` once it has, or if it does not. */
  private early: { events: Happening[]; frames: { readonly at: number; readonly bytes: number }[] } | undefined = {
    events: [],
    frames: [],
  };
  /** What is older is not counted here: it is in the history of the server. */
  private countsFrom = -Infinity;
  private isOpen = false;
  private settled = 0;
  private isStepDue = false;

  /** When the page was loaded, in epoch ms. */
  readonly loadedAt = Date.now();
  readonly ring = new FrameRing(keptFrames);
  readonly history = new History(keptMs);
  readonly status = this.feed.status;
  /** The feed behind the relay has stopped: why. The page looks again by itself. */
  readonly stop = this.stopBy.asReadonly();
  /** A person has just asked to connect again. */
  readonly isAsked = this.asked.asReadonly();
  /** Which feed it is, once it is known. */
  readonly name = this.feedName.asReadonly();
  /** What happened, newest first. */
  readonly entries = this.logged.asReadonly();
  readonly totals = this.counted.asReadonly();
  /** Of the last second. */
  readonly latency = this.latencyNow.asReadonly();
  /** Of the last second. */
  readonly rates = this.ratesNow.asReadonly();
  /** Changes when there are new frames to show. */
  readonly step = this.steps.asReadonly();
  /** Changes when there is a new second in the history. */
  readonly sampled = this.samples.asReadonly();
  readonly state = computed<FeedState>(() => {
    const { state } = this.status();
    return state === 'reconnecting' && this.stopBy() ? 'stopped' : state;
  });

  constructor() {
    const { events$ } = this.feed;
    events$.subscribe((event) => (event.type === 'frame' ? this.take(event) : this.hear(event)));
    // Once the stream has begun: what comes between the two answers would be in neither.
    const begun$ = events$.pipe(
      filter((event) => !('failure' in event && isOfPage(event.failure)) && event.type !== 'reconnecting'),
      take(1),
    );
    begun$.pipe(switchMap(() => serverHistory$)).subscribe({
      next: (history) => this.join(history),
      // Then the page tells what it has seen, and says since when.
      error: () => (this.early = undefined),
    });
    effect(() => {
      const second = Math.floor((this.clock.now() - settledAfterMs) / 1_000) - 1;
      if (second > this.settled) untracked(() => this.settle(second));
    });
  }

  /** Begins again after a stop. */
  restart(): void {
    this.asked.set(true);
    this.log.tell({ type: 'asked', at: Date.now() });
    this.told();
    // The relay never begins again by itself: it would evict another client. A person who asks may.
    void fetch('/feed/restart', { method: 'POST' })
      // Then the feed says by itself what is wrong.
      .catch(() => undefined)
      .finally(() => this.feed.restart());
  }

  private take(frame: Extract<RelayedEvent, { type: 'frame' }>): void {
    if (!this.isOpen) this.resume(frame.receivedAt);
    this.ring.push(frame);
    const { receivedAt: at, data } = frame;
    this.early?.frames.push({ at, bytes: data.length });
    // What came before the page was loaded is in the history, also where a reload goes on with it.
    if (at >= this.countsFrom) {
      this.count(at, data.length);
      this.latencies.add(Date.now() - at);
    }
    if (this.isStepDue) return;
    this.isStepDue = true;
    setTimeout(() => requestAnimationFrame(() => this.show()), shownEveryMs);
  }

  private count(at: number, bytes: number): void {
    this.tally.count(bytes);
    this.history.count(at, bytes);
  }

  private show(): void {
    this.isStepDue = false;
    if (this.feedName() === undefined) this.feedName.set(this.ring.row(this.ring.newest)?.frame.feed);
    this.steps.update((step) => step + 1);
  }

  private hear(event: Happening): void {
    if (event.type === 'watermark') return;
    this.early?.events.push(event);
    if (event.type === 'opened') {
      this.isOpen = true;
      this.feedName.set(event.feed);
    } else if (event.type === 'disconnected' || event.type === 'stopped') this.isOpen = false;
    this.followStop(event);
    if (isOfThisPage(event) || timeOf(event) >= this.countsFrom) this.follow(event);
    this.told();
  }

  private followStop(event: Happening): void {
    if (event.type === 'disconnected' && isStop(event.failure)) this.stopBy.set(event.failure);
    else if (event.type === 'opened' || event.type === 'ticket-requested') this.stopBy.set(undefined);
    else return;
    this.asked.set(false);
  }

  /** Takes an event into the log, the totals and the charts. */
  private follow(event: Happening): void {
    const gap = this.outages.follow(event);
    this.tally.follow(event);
    if (event.type === 'opened') this.history.open(event.at);
    else if (event.type === 'disconnected' || event.type === 'stopped') this.history.lose(event.failure.endedAt);
    if (event.type === 'opened' || event.type === 'disconnected' || event.type === 'stopped') this.log.tell(event);
    if (gap === undefined) return;
    this.history.miss(gap.from, gap.to);
    this.log.tell({ type: 'gap', ...gap });
  }

  /** A frame came, and no event said that the feed was open: the page joined late, or goes on where it was. */
  private resume(at: number): void {
    this.isOpen = true;
    this.stopBy.set(undefined);
    this.history.open(at, true);
    this.log.resume(at);
    this.told();
  }

  /** The log and the totals say the same at any time. */
  private told(): void {
    this.logged.set(this.log.list);
    this.counted.set(this.tally.read(this.outages));
  }

  /** Begins again with what the server knows, and takes what came since from the stream. */
  private join(known: ServerHistory): void {
    const { events, frames } = this.early ?? { events: [], frames: [] };
    this.early = undefined;
    this.countsFrom = known.until;
    [this.log, this.outages, this.tally] = [new FeedLog(), new Outages(), new Tally()];
    for (const part of [this.outages, this.tally, this.history]) part.begin(known);
    for (const { at, bytes } of frames) if (at >= known.until) this.count(at, bytes);
    const isOwn = (event: Happening, index: number) =>
      isOfThisPage(event) ||
      timeOf(event) >= known.until ||
      // What ended an outage of this page.
      (event.type === 'opened' && events.slice(0, index).some(isOfThisPage));
    const steps = [
      ...known.events.map((event) => ({ at: timeOf(event), take: () => this.log.tell(event) })),
      ...events.filter(isOwn).map((event) => ({ at: timeOf(event), take: () => this.follow(event) })),
    ];
    for (const { take } of steps.sort((one, other) => one.at - other.at)) take();
    this.update();
  }

  private settle(second: number): void {
    this.settled = second;
    const latency = this.latencies.read();
    this.latencyNow.set(latency);
    this.history.settle(second, latency);
    this.update();
  }

  private update(): void {
    this.ratesNow.set(this.history.rates(this.settled));
    this.told();
    this.samples.update((sample) => sample + 1);
  }
}

const timeOf = (event: Happening | LogEvent): number => (event.type === 'gap' ? event.to : event.at);

/** Returns whether an event is one of the connection of this page, of which the server knows nothing. */
const isOfThisPage = (event: Happening): boolean =>
  'failure' in event && event.type !== 'gap' && isOfPage(event.failure);
