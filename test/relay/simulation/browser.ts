import { noop, Observable, type SchedulerLike } from 'rxjs';
import { pageFeed$ } from '../../../src/browser/relay-feed.js';
import { type RelayFeedOptions, resolveRelayFeed } from '../../../src/browser/relay-feed-options.js';
import { sharedFeed$ } from '../../../src/browser/tabs/shared-feed.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { FakeBrowser } from '../../browser/tabs/fake-browser.js';

/** How long a message between tabs takes, and until a free lock is granted, in ms. */
const messageMs = 2;

interface Request {
  readonly name: string;
  readonly tab: symbol;
  readonly grant: () => unknown;
}

/**
 * A browser in virtual time, whose tabs share one stream. When a tab closes, the next one leads. No tab steals a lock:
 * `query` answers with a promise, and none resolves in virtual time.
 */
export class Browser {
  readonly #scheduler: SchedulerLike;
  readonly #channels = new Set<Channel>();
  #waiting: readonly Request[] = [];
  readonly #held = new Map<string, Request>();
  readonly #page = new FakeBrowser();

  constructor(scheduler: SchedulerLike) {
    this.#scheduler = scheduler;
    const channels = this.#channels;
    const ofBrowser = class extends Channel {
      constructor(name: string) {
        super(name, channels, scheduler);
      }
    };
    this.#page.set('BroadcastChannel', ofBrowser);
  }

  /** Emits the events of a new tab. */
  tab$(url: string, options: RelayFeedOptions): Observable<RelayedEvent> {
    return new Observable((subscriber) => {
      const tab = Symbol('tab');
      const settings = resolveRelayFeed(url, options);
      const locks = { request: this.#request.bind(this, tab), query: () => new Promise(noop) };
      this.#page.set('navigator', { locks });
      const shared$ = sharedFeed$(settings, (state) => pageFeed$(settings, state));
      const subscription = shared$.subscribe(subscriber as never);
      return () => {
        subscription.unsubscribe();
        this.#leave(tab);
      };
    });
  }

  /** Ends the globals of its pages. */
  close(): void {
    this.#page.remove();
  }

  #request(tab: symbol, name: string, _options: unknown, grant: () => unknown): { readonly catch: () => void } {
    this.#waiting = [...this.#waiting, { name, tab, grant }];
    this.#grant(name);
    return { catch: noop };
  }

  #grant(name: string): void {
    const next = this.#waiting.find((each) => each.name === name);
    if (next === undefined || this.#held.has(name)) return;
    this.#held.set(name, next);
    this.#waiting = this.#waiting.filter((each) => each !== next);
    this.#scheduler.schedule(() => this.#held.get(name) === next && next.grant(), messageMs);
  }

  #leave(tab: symbol): void {
    this.#waiting = this.#waiting.filter((each) => each.tab !== tab);
    for (const [name, held] of [...this.#held]) {
      if (held.tab !== tab) continue;
      this.#held.delete(name);
      this.#grant(name);
    }
  }
}

/** A `BroadcastChannel` in virtual time. */
class Channel {
  readonly #name: string;
  readonly #all: Set<Channel>;
  readonly #scheduler: SchedulerLike;
  readonly #listeners = new Set<(event: { readonly data: unknown }) => void>();

  constructor(name: string, all: Set<Channel>, scheduler: SchedulerLike) {
    this.#name = name;
    this.#all = all;
    this.#scheduler = scheduler;
    all.add(this);
  }

  addEventListener(_type: string, listener: (event: { readonly data: unknown }) => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: string, listener: (event: { readonly data: unknown }) => void): void {
    this.#listeners.delete(listener);
  }

  postMessage(data: unknown): void {
    for (const other of [...this.#all]) {
      if (other === this || other.#name !== this.#name) continue;
      this.#scheduler.schedule(() => {
        if (this.#all.has(other)) for (const listener of [...other.#listeners]) listener({ data });
      }, messageMs);
    }
  }

  close(): void {
    this.#all.delete(this);
  }
}
