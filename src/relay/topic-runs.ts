import type { Observable } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { RelayFullError } from './relay-full-error.js';
import type { RelaySettings } from './relay-options.js';
import type { RelayRun } from './relay-run.js';
import { type SharedRun, shareRun } from './shared-run.js';
import { type RelayTopic, topicEvents$ } from './topic.js';

/** The runs of a relay: one for the complete feed, and one for each topic. */
export class TopicRuns {
  readonly #source: Observable<RelayedEvent>;
  readonly #settings: RelaySettings;
  readonly #onTopicStop: (error: unknown) => void;
  readonly #feed: SharedRun;
  readonly #topics = new Map<RelayTopic, SharedRun>();

  /**
   * @param onStop - called with the error of the feed
   * @param onTopicStop - called with the error of a topic
   */
  constructor(
    source: Observable<RelayedEvent>,
    settings: RelaySettings,
    onStop: (error: unknown) => void,
    onTopicStop: (error: unknown) => void,
  ) {
    this.#source = source;
    this.#settings = settings;
    this.#onTopicStop = onTopicStop;
    this.#feed = shareRun(source, settings, onStop, { cluster: settings.cluster });
  }

  /** The number of topics, without the complete feed. */
  get size(): number {
    this.#removeReleased();
    return this.#topics.size;
  }

  /** All runs that store events. */
  get runs(): readonly RelayRun[] {
    return [this.#feed, ...this.#topics.values()].flatMap(({ runs }) => [...runs]);
  }

  /**
   * Returns the run of a topic, or of the complete feed.
   *
   * @throws RelayFullError when there are `maxTopics`
   */
  run$(topic: RelayTopic | undefined): Observable<RelayRun> {
    if (topic === undefined) return this.#feed.run$;
    const existing = this.#topics.get(topic);
    if (existing !== undefined) return existing.run$;
    const { maxTopics, scheduler } = this.#settings;
    if (this.size >= maxTopics) throw new RelayFullError(`There are ${maxTopics} topics. Retry later.`, 'topics');
    const events$ = topicEvents$(this.#source, topic, scheduler);
    const run = shareRun(events$, this.#settings, this.#onTopicStop, { staysEnded: false });
    this.#topics.set(topic, run);
    return run.run$;
  }

  /** Makes the next client of each ended run begin a new run. Current clients read their run to its end. */
  restart(): void {
    for (const run of [this.#feed, ...this.#topics.values()]) run.restart();
  }

  /** Ends all subscriptions of the source. */
  close(): void {
    for (const run of [this.#feed, ...this.#topics.values()]) run.close();
  }

  #removeReleased(): void {
    for (const [topic, { runs }] of this.#topics) if (runs.size === 0) this.#topics.delete(topic);
  }
}
