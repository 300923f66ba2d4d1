import type { Observable } from 'rxjs';
import type { RelayedEvent } from '../protocol/event.js';
import { RelayFullError } from './relay-full-error.js';
import type { RelaySettings } from './relay-options.js';
import type { RelayRun } from './relay-run.js';
import { type SharedRun, shareRun } from './shared-run.js';
import { type RelayTopic, topicEvents$ } from './topic.js';

/** The runs of a relay: one of the feed as it is, and one for each operator. */
export class Topics {
  readonly #source: Observable<RelayedEvent>;
  readonly #settings: RelaySettings;
  readonly #onStop: (error: unknown) => void;
  readonly #whole: SharedRun;
  readonly #runs = new Map<RelayTopic, SharedRun>();

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
    this.#onStop = onTopicStop;
    this.#whole = shareRun(source, settings, onStop);
  }

  /** How many topics are there, besides the whole feed. */
  get size(): number {
    this.#forget();
    return this.#runs.size;
  }

  /** The runs that are held. */
  get held(): readonly RelayRun[] {
    return [this.#whole, ...this.#runs.values()].flatMap(({ held }) => [...held]);
  }

  /**
   * Gives the run of a topic; without one, that of the whole feed.
   *
   * @throws RelayFullError when there are `maxTopics`
   */
  run$(topic: RelayTopic | undefined): Observable<RelayRun> {
    if (topic === undefined) return this.#whole.run$;
    const known = this.#runs.get(topic);
    if (known !== undefined) return known.run$;
    const { maxTopics, scheduler } = this.#settings;
    if (this.size >= maxTopics) throw new RelayFullError(`There are ${maxTopics} topics. Come back later.`, 'topics');
    const events$ = topicEvents$(this.#source, topic, scheduler);
    const run = shareRun(events$, this.#settings, this.#onStop, { isKept: false });
    this.#runs.set(topic, run);
    return run.run$;
  }

  /** Lets the next client of each run that has ended begin another one. Clients that are here read theirs to its end. */
  restart(): void {
    for (const run of [this.#whole, ...this.#runs.values()]) run.restart();
  }

  /** Ends all subscriptions of the source. */
  close(): void {
    for (const run of [this.#whole, ...this.#runs.values()]) run.close();
  }

  // Those that were released: nobody has come back.
  #forget(): void {
    for (const [topic, { held }] of this.#runs) if (held.size === 0) this.#runs.delete(topic);
  }
}
