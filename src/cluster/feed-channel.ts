import { Subscription } from 'rxjs';
import type { FeedEvent, LifecycleEvent, OwnerChanged } from '../protocol/event.js';
import type { PositionedFeed } from '../protocol/feed-position.js';
import type { Feed } from '../protocol/feed.js';
import type { Frame } from '../protocol/frame.js';
import { clampMs } from '../protocol/rules.js';
import type { ClusterSettings } from './cluster-options.js';
import type { Report } from './election/election.js';
import { createFollower } from './follower/follower.js';
import { createDecoder } from './messages/decoder.js';
import { encode } from './messages/encode.js';
import type { FeedMessage, PlainMessage } from './messages/feed-message.js';
import { createPublisher } from './messages/publisher.js';
import { createOutbox } from './outbox.js';
import { subjectsOf } from './subjects.js';

/** The frames and events of the cluster: sends those of this replica while it owns, and emits those of the owner, which can be this replica. */
export interface FeedChannel extends PositionedFeed {
  /** The highest generation of the frames that it emits, or will emit; 0 without any. */
  readonly generation: number;
  /** Sets what the next messages report; `undefined` if this replica does not own. `isServing`: it owns, and no other replica is known to. */
  report(report: Report | undefined, epoch: number, isServing: boolean): void;
  readonly frame: (frame: Frame) => void;
  readonly event: (event: LifecycleEvent) => void;
  beat(report: Report, epoch: number): void;
  /** No message of this generation of this replica follows. */
  end(gen: number): void;
  /** Handles the loss of the connection to the engine. */
  away(): void;
  /** Sends the frames that wait for the end of the turn. */
  flush(): void;
  close(): void;
}

/** What a {@link FeedChannel} needs and reports. */
export interface FeedChannelHandlers {
  /** Returns the id of this replica. */
  readonly self: () => string;
  /** Sends a message to a subject. */
  readonly publish: (subject: string, bytes: Uint8Array) => void;
  readonly event: (event: FeedEvent | OwnerChanged) => void;
  /** Is called with the beat of another replica. */
  readonly heard: (report: Report) => void;
  /** Is called if the engine refuses a subscription. */
  readonly error: (error: unknown) => void;
}

/**
 * An owner whose beats have not come back for this many leases sends only beats. Its connection may be cut off without notice, and the client
 * of the engine would store all frames.
 */
const silentLeases = 5;

/** Creates a {@link FeedChannel}. It subscribes to the messages of owners when `report` is called. */
export const createFeedChannel = (
  feed: Feed,
  { engine, account, batchBytes, leaseMs, feed: { maxFrameBytes } }: ClusterSettings,
  handlers: FeedChannelHandlers,
): FeedChannel => {
  const { self, publish } = handlers;
  const subjects = subjectsOf(account);
  const decoder = createDecoder(feed, maxFrameBytes, self);
  const publisher = createPublisher();
  const follower = createFollower(feed, handlers.event);
  const outbox = createOutbox((bytes) => publish(subjects.feed, bytes), batchBytes);
  let timer: NodeJS.Timeout | undefined;
  /** When the last message of an owner arrived, also one of this replica. */
  let receivedAt: number | undefined;
  let isSilent = false;
  let source = { subject: '', subscription: new Subscription() };

  const follow = (message: FeedMessage): void => {
    follower.receive(message, performance.now());
    schedule();
  };

  const schedule = (): void => {
    clearTimeout(timer);
    // A subscriber can end the replica.
    if (source.subscription.closed) return;
    const at = follower.nextTick;
    if (at !== undefined) timer = setTimeout(tick, clampMs(Math.max(0, Math.ceil(at - performance.now()))));
  };

  const tick = (): void => {
    follower.tick(performance.now());
    schedule();
  };

  const send = (message: PlainMessage | undefined): void => {
    if (message === undefined) return;
    if (!isSilent) outbox.message(message);
    follow(message);
  };

  const receive = (bytes: Uint8Array): void => {
    receivedAt = performance.now();
    isSilent = false;
    const message = decoder.decode(bytes);
    if (message === undefined) return;
    if (message.phase !== 'free') follow(message);
    if (message.kind === 'beat') handlers.heard(message);
  };

  const listen = (subject: string): void => {
    if (subject === source.subject) return;
    const before = source.subscription;
    const subscription = new Subscription();
    source = { subject, subscription };
    subscription.add(engine.subscribe(subject).subscribe({ next: receive, error: handlers.error }));
    before.unsubscribe();
  };

  return {
    get position() {
      return follower.position;
    },
    get generation() {
      return follower.generation;
    },
    report: (report, epoch, isServing) => {
      if (report !== undefined) {
        if (report.gen !== publisher.place.gen) outbox.flush();
        publisher.report(report, epoch);
      }
      // An owner that emits its own frames needs only the beats of another owner.
      const isSource = isServing && report !== undefined && follower.follows(report.gen, report.owner);
      listen(isSource ? subjects.beats : subjects.feed);
    },
    frame: (frame) => {
      if (!isSilent) outbox.frame(frame, publisher.head);
      // Without its own beats, the follower must see that frames of this replica still arrive.
      const isSource = source.subject === subjects.beats;
      if (!isSource || !follower.expects(publisher.place)) return follow(publisher.frame(frame));
      publisher.count();
      follower.next(frame);
    },
    event: (event) => send(publisher.event(event)),
    beat: (report, epoch) => {
      publisher.report(report, epoch);
      isSilent = receivedAt !== undefined && performance.now() - receivedAt > leaseMs * silentLeases;
      const beat = publisher.beat(Date.now());
      outbox.message(beat);
      publish(subjects.beats, encode(beat));
      if (report.phase !== 'free') follow(beat);
    },
    end: (gen) => send(publisher.end(gen, Date.now())),
    away: () => follower.away(Date.now()),
    flush: () => outbox.flush(),
    close: () => {
      clearTimeout(timer);
      source.subscription.unsubscribe();
    },
  };
};
