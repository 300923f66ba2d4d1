import { effect, inject, Injectable, signal, untracked } from '@angular/core';
import { filter, switchMap, take } from 'rxjs';
import { injectTradeFeed } from 'rx-trade-feed/angular';
import type { RelayedEvent } from 'rx-trade-feed/browser';
import { Clock } from './clock';
import { isOfPage } from './failure';
import { FeedLog, type LogEvent } from './feed-log';
import { FeedStop } from './feed-stop';
import { FrameRing } from './frame-ring';
import { History, type Rates } from './history';
import { type Latency, LatencyTally } from './latency';
import { type FeedEvent, Outages } from './outages';
import { type ServerHistory, serverHistory$ } from './server-history';
import { Tally, type Totals } from './tally';

const maxFrames = 2_000;
const historyMs = 15 * 60_000;
/** How often the list of frames is updated, in ms. A person can't read faster changes. */
const updateEveryMs = 200;
/** A second is complete this long after its end, in ms. */
const completeAfterMs = 300;

/**
 * Follows the feed, and stores the data of the page.
 *
 * It starts with the history of the server, and continues with the stream. Frames go into plain objects: no signal is set, and nothing is
 * rendered, for a single frame. The page is updated in steps.
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
  private readonly feedStop = new FeedStop(this.feed);
  private log = new FeedLog(Date.now());
  private outages = new Outages();
  private tally = new Tally();
  private readonly logged = signal(this.log.list);
  private readonly loggedFrom = signal(this.log.since);
  private readonly counted = signal<Totals>(this.tally.read(this.outages));
  /** The events and frames before the history of the server arrived; `undefined` after that, or if the request failed. */
  private early: { events: FeedEvent[]; frames: { readonly at: number; readonly bytes: number }[] } | undefined = {
    events: [],
    frames: [],
  };
  /** Older frames and events aren't counted here: the history of the server contains them. */
  private countsFrom = -Infinity;
  private isOpen = false;
  private completed = 0;
  private isStepDue = false;

  /** When the page was loaded, in epoch ms. */
  readonly loadedAt = Date.now();
  readonly ring = new FrameRing(maxFrames);
  readonly history = new History(historyMs);
  readonly status = this.feed.status;
  /** Whether the newest frame is too old. */
  readonly freshness = this.feed.freshness;
  /** The failure that stopped the feed of the relay; `undefined` while it runs. The page checks again automatically. */
  readonly stop = this.feedStop.failure;
  /** Whether a person has requested a restart. */
  readonly isRestarting = this.feedStop.isRestarting;
  /** The name of the feed, when it is known. */
  readonly name = this.feedName.asReadonly();
  /** The entries of the log, newest first. */
  readonly entries = this.logged.asReadonly();
  /** The start of the time that the log covers, in epoch ms. */
  readonly entriesSince = this.loggedFrom.asReadonly();
  readonly totals = this.counted.asReadonly();
  /** The latency of the last second. */
  readonly latency = this.latencyNow.asReadonly();
  /** The rates of the last second. */
  readonly rates = this.ratesNow.asReadonly();
  /** Changes when there are new frames to show. */
  readonly step = this.steps.asReadonly();
  /** Changes when there is a new second in the history. */
  readonly sampled = this.samples.asReadonly();
  readonly state = this.feedStop.state;

  constructor() {
    const { events$ } = this.feed;
    events$.subscribe((event) => (event.type === 'frame' ? this.takeFrame(event) : this.takeEvent(event)));
    // The history is requested after the stream has begun. Otherwise frames between the two responses would be in neither.
    const begun$ = events$.pipe(
      filter((event) => !('failure' in event && isOfPage(event.failure)) && event.type !== 'reconnecting'),
      take(1),
    );
    begun$.pipe(switchMap(() => serverHistory$)).subscribe({
      next: (history) => this.join(history),
      // Without the history the page shows its own counts, and since when it counts.
      error: () => (this.early = undefined),
    });
    effect(() => {
      const second = Math.floor((this.clock.now() - completeAfterMs) / 1_000) - 1;
      if (second > this.completed) untracked(() => this.complete(second));
    });
  }

  /** Restarts the feed after a stop. */
  restart(): void {
    this.log.record({ type: 'restart-requested', at: Date.now() });
    this.publish();
    this.feedStop.restart();
  }

  private takeFrame(frame: Extract<RelayedEvent, { type: 'frame' }>): void {
    if (!this.isOpen) this.resume(frame.receivedAt);
    this.ring.push(frame);
    const { receivedAt: at, data } = frame;
    this.early?.frames.push({ at, bytes: data.length });
    // The history contains frames from before the page was loaded, also after a reload that continues the stream.
    if (at >= this.countsFrom) {
      this.count(at, data.length);
      this.latencies.add(Date.now() - at);
    }
    if (this.isStepDue) return;
    this.isStepDue = true;
    setTimeout(() => requestAnimationFrame(() => this.show()), updateEveryMs);
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

  private takeEvent(event: FeedEvent): void {
    if (event.type === 'watermark') return;
    this.early?.events.push(event);
    if (event.type === 'opened') {
      this.isOpen = true;
      this.feedName.set(event.feed);
    } else if (event.type === 'disconnected' || event.type === 'stopped') this.isOpen = false;
    this.feedStop.follow(event);
    if (isOfThisPage(event) || timeOf(event) >= this.countsFrom) this.follow(event);
    this.publish();
  }

  /** Adds an event to the log, the totals and the charts. */
  private follow(event: FeedEvent): void {
    const gap = this.outages.follow(event);
    this.tally.follow(event, this.stop());
    if (event.type === 'opened') this.history.open(event.at);
    else if (event.type === 'disconnected' || event.type === 'stopped') this.history.lose(event.failure.endedAt);
    if (event.type === 'opened' || event.type === 'disconnected' || event.type === 'stopped') this.log.record(event);
    if (gap === undefined) return;
    this.history.miss(gap.from, gap.to);
    this.log.record({ type: 'gap', ...gap });
  }

  /** Handles a frame without an `opened` event before it: the page joined late, or continues after a reload. */
  private resume(at: number): void {
    this.isOpen = true;
    this.feedStop.clear();
    this.history.open(at, true);
    this.log.resume(at);
    this.publish();
  }

  /** Updates the signals of the log and of the totals together, so that both show the same figures. */
  private publish(): void {
    this.logged.set(this.log.list);
    this.loggedFrom.set(this.log.since);
    this.counted.set(this.tally.read(this.outages));
  }

  /** Starts again with the history of the server, and adds the later events and frames of the stream. */
  private join(known: ServerHistory): void {
    const { events, frames } = this.early ?? { events: [], frames: [] };
    this.early = undefined;
    this.countsFrom = known.until;
    [this.log, this.outages, this.tally] = [new FeedLog(known.eventsSince), new Outages(), new Tally()];
    for (const part of [this.outages, this.tally, this.history]) part.begin(known);
    for (const { at, bytes } of frames) if (at >= known.until) this.count(at, bytes);
    const isNew = (event: FeedEvent, index: number) =>
      isOfThisPage(event) ||
      timeOf(event) >= known.until ||
      // This event ended an outage of the connection to this page.
      (event.type === 'opened' && events.slice(0, index).some(isOfThisPage));
    const steps = [
      ...known.events.map((event) => ({ at: timeOf(event), take: () => this.log.record(event) })),
      ...events.filter(isNew).map((event) => ({ at: timeOf(event), take: () => this.follow(event) })),
    ];
    const opened = known.events.findLast(({ type }) => type === 'opened');
    if (opened?.type === 'opened') this.feedName.set(opened.feed);
    for (const { take } of steps.sort((one, other) => one.at - other.at)) take();
    this.update();
  }

  private complete(second: number): void {
    this.completed = second;
    const latency = this.latencies.read();
    this.latencyNow.set(latency);
    this.history.complete(second, latency);
    this.update();
  }

  private update(): void {
    this.ratesNow.set(this.history.rates(this.completed));
    this.publish();
    this.samples.update((sample) => sample + 1);
  }
}

const timeOf = (event: FeedEvent | LogEvent): number => (event.type === 'gap' ? event.to : event.at);

/** Returns whether an event belongs to the connection of this page. The server doesn't know such events. */
const isOfThisPage = (event: FeedEvent): boolean =>
  'failure' in event && event.type !== 'gap' && isOfPage(event.failure);
