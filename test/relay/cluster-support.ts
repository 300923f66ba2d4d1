import { type SchedulerLike, Subject } from 'rxjs';
import { Follower } from '../../src/cluster/follower.js';
import type { FeedMessage } from '../../src/cluster/messages.js';
import { Publisher } from '../../src/cluster/publisher.js';
import type { FeedEvent, LifecycleEvent, OwnerChanged } from '../../src/protocol/event.js';
import { clusterMeanings } from '../../src/protocol/failures/classify.js';
import { gapOfMissed } from '../../src/protocol/feed-state.js';
import { createRelay, type RelayOptions } from '../../src/relay/index.js';
import { type Clock, frame, range } from './support.js';

/** A replica of a cluster, with its relay. */
export class Replica {
  readonly #follower;
  readonly relay;

  constructor(scheduler: SchedulerLike, options: RelayOptions = {}) {
    const events = new Subject<FeedEvent | OwnerChanged>();
    this.#follower = new Follower('market', (event) => events.next(event));
    this.relay = createRelay(events, { scheduler, batchMs: 0, cluster: this.#follower, ...options });
    this.relay.hold();
  }

  receive(messages: readonly FeedMessage[]): void {
    for (const message of messages) {
      this.#follower.receive(message, message.at);
      this.#follower.tick(message.at + 200);
    }
  }

  away(): void {
    this.#follower.away('away');
  }
}

/** The owners of a cluster, which number their frames. */
export class Owners {
  readonly #publisher = new Publisher();
  #generation = 0;
  #frames = 0;

  readonly clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The messages of a new owner. */
  next(owner = `replica-${'0123456789ab'.slice(this.#generation % 10)}xyzxyzxyzxyz`): readonly FeedMessage[] {
    this.#generation += 1;
    this.clock.pass(1);
    this.#publisher.report({ gen: this.#generation, owner, phase: 'open', revision: this.#generation }, 5);
    const { now } = this.clock;
    const opened = this.event({ type: 'opened', at: now, feed: 'market', connection: 1 });
    return [
      ...opened,
      ...this.event(gapOfMissed({ from: now, to: now, frames: undefined }, clusterMeanings.ownerChanged)),
    ];
  }

  event(event: LifecycleEvent): readonly FeedMessage[] {
    const message = this.#publisher.event(event);
    return message ? [message] : [];
  }

  frames(count = 1): readonly FeedMessage[] {
    return range(1, count).map(() => {
      this.#frames += 1;
      return this.#publisher.frame(frame(this.#frames, this.clock.now));
    });
  }

  beat(): readonly FeedMessage[] {
    return [this.#publisher.beat(this.clock.now)];
  }
}
