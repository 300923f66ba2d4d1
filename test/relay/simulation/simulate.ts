import { map, type Observable, retry, timer, VirtualTimeScheduler } from 'rxjs';
import { relayFeed$, type RelayFeedOptions } from '../../../src/browser/index.js';
import { relayRequest$ as usedRequest$ } from '../../../src/browser/relay-request.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { createRelay, type Relay, type RelayTopic } from '../../../src/relay/index.js';
import { type Chance, createChance } from '../../simulation/chance.js';
import { Browser } from './browser.js';
import { createLink, type Link, relayRequest$, resetNetwork, type Target } from './network.js';
import { Observer } from './observer.js';
import { DirectFeed, Service } from './service.js';

const begin = 1_700_000_000_000;
const healMs = 8_500;

/** The topics of pages: none, each frame, and the number of each frame as a value. */
const topics: readonly (RelayTopic | undefined)[] = [
  undefined,
  (events$) => events$,
  (events$) =>
    events$.pipe(map((event) => (event.type === 'frame' ? { receivedAt: event.receivedAt, n: event.text() } : event))),
];

/** A process with a relay of a direct feed, or of another relay. */
interface Node {
  readonly name: string;
  readonly feed: DirectFeed | undefined;
  /** The upstream relay, if any, and the connection to it. */
  readonly before: Node | undefined;
  readonly upstream: Link | undefined;
  relay: Relay | undefined;
}

/** What happened in a run. */
export interface Run {
  readonly seed: number;
  readonly violations: readonly string[];
  /** How many violations there are of each kind. */
  readonly kinds: Readonly<Record<string, number>>;
  readonly timeline: readonly string[];
  readonly faults: Readonly<Record<string, number>>;
  readonly frames: number;
  readonly received: number;
  readonly gaps: number;
  readonly windows: number;
  readonly completeWindows: number;
  readonly virtualMs: number;
}

/** What reads a feed, and its link to a relay. A reader that joins anew replaces the one before. */
interface Reader {
  readonly name: string;
  readonly link: Link;
  readonly feed$: () => Observable<RelayedEvent>;
  observer: Observer;
}

/**
 * The world of a run: a service, two relays of direct feeds, two relays of those, two pages, two tabs that share a
 * stream, and one direct reader.
 */
export class World {
  readonly scheduler = new VirtualTimeScheduler(undefined, Infinity);
  readonly timeline: string[] = [];
  readonly faults: Record<string, number> = {};
  readonly service: Service;
  nodes: readonly Node[] = [];
  pages: readonly Reader[] = [];
  /** Two tabs with one link. */
  tabs: readonly Reader[] = [];
  readonly direct: { readonly feed: DirectFeed; readonly observer: Observer };
  /** All that have read. */
  readonly observers: { readonly name: string; readonly observer: Observer }[] = [];
  readonly browser: Browser;
  /** Removes the globals of the browser. */
  readonly close: () => void;
  readonly #chance: Chance;
  readonly #holds: boolean;
  readonly #lingerMs: number;
  readonly #capacity: number;

  constructor(chance: Chance) {
    resetNetwork();
    this.#chance = chance;
    this.#holds = chance.isTrue(0.7);
    this.#lingerMs = chance.oneOf([0, 5_000]);
    this.#capacity = chance.oneOf([60, 10_000, 10_000]);
    this.scheduler.frame = begin;
    this.service = new Service(this.scheduler, chance);
    this.browser = new Browser(this.scheduler);
    this.close = this.browser.open();
    const direct = ['a', 'b'].map((name) => this.#node(name, this.#direct(), undefined));
    this.nodes = [...direct, ...direct.map((node, n) => this.#node(`${node.name}${n}`, undefined, node))];
    for (const node of this.nodes) this.start(node);
    this.pages = [0, 1].map((n) => {
      const target = { ...this.#target(), select: chance.oneOf(topics) };
      const link = this.#link(`page${n}`, target);
      return this.#reader(`page ${n}`, link, () => this.#feed$(`page${n}`));
    });
    const shared = this.#link('tabs', { ...this.#target(), select: chance.oneOf(topics) });
    this.tabs = [0, 1].map((n) =>
      this.#reader(`tab ${n}`, shared, () => this.browser.tab$(addressOf('tabs'), this.#options)),
    );
    const feed = this.#direct();
    // Another client of the account stops the feed: an app that knows this subscribes again.
    const again = { delay: () => timer(400, this.scheduler) };
    this.direct = { feed, observer: this.#observer('direct reader', feed.events$.pipe(retry(again)), true) };
  }

  get now(): number {
    return this.scheduler.now();
  }

  pass(ms: number): void {
    const to = this.now + ms;
    this.scheduler.maxFrames = to;
    this.scheduler.flush();
    this.scheduler.frame = to;
  }

  get feeds(): readonly DirectFeed[] {
    return [...this.nodes.flatMap(({ feed }) => feed ?? []), this.direct.feed];
  }

  get links(): readonly Link[] {
    return [...new Set([...this.pages, ...this.tabs].map(({ link }) => link))];
  }

  /** A page or a tab is closed, and a new one joins. */
  joinAnew(reader: Reader): void {
    reader.observer.leave();
    reader.observer = this.#observer(reader.name, reader.feed$());
  }

  later(ms: number, run: () => void): void {
    this.scheduler.schedule(run, ms);
  }

  note(what: string): void {
    this.timeline.push(`${this.now - begin} ${what}`);
  }

  start(node: Node): void {
    if (node.relay !== undefined) return;
    const { scheduler } = this;
    const source = node.feed?.events$ ?? this.#feed$(node.name);
    const relay = createRelay(source, {
      ...{ scheduler, heartbeatMs: 1_000, lingerMs: this.#lingerMs, capacity: this.#capacity },
    });
    relay.events$.subscribe(({ type }) => {
      if (type !== 'source-stopped') return;
      this.later(400, () => {
        relay.restart();
        if (this.#holds && node.relay === relay) relay.hold();
      });
    });
    node.relay = relay;
    if (this.#holds) relay.hold();
    this.#lead(node, undefined, relay);
  }

  /** Ends the process, gracefully or not. */
  end(node: Node, isGraceful: boolean): void {
    const { relay } = node;
    if (relay === undefined) return;
    node.relay = undefined;
    this.#lead(node, relay, undefined, !isGraceful);
    relay.close();
  }

  /** Ends all faults. */
  heal(): void {
    for (const feed of this.feeds) feed.isRefused = false;
    for (const node of this.nodes) this.start(node);
    for (const link of this.links) if (link.target.relay === undefined) this.moveTo(link, this.nodes[0] as Node);
  }

  moveTo(link: Link, { relay }: Node): void {
    link.target = { ...link.target, relay };
  }

  // Keeps the links of a process that was replaced at the same address.
  #lead(node: Node, from: Relay | undefined, to: Relay | undefined, cuts = false): void {
    const links = [...this.#downstream(node), ...this.links];
    for (const link of links) {
      if (link.target.relay !== from || (from === undefined && !this.#downstream(node).includes(link))) continue;
      link.target = { ...link.target, relay: to };
      if (cuts) link.cut();
    }
  }

  #downstream(node: Node): readonly Link[] {
    return this.nodes.flatMap(({ before, upstream }) => (before === node && upstream ? [upstream] : []));
  }

  #node(name: string, feed: DirectFeed | undefined, before: Node | undefined): Node {
    const upstream = before && this.#link(name, { relay: before.relay });
    return { name, feed, before, upstream, relay: undefined };
  }

  #link(name: string, target: Link['target']): Link {
    return createLink(addressOf(name), target, Math.ceil(this.#chance.between(1, 30)), this.scheduler);
  }

  #direct(): DirectFeed {
    return new DirectFeed(this.service, this.scheduler, this.#chance);
  }

  #target(): Target {
    return { relay: this.#chance.oneOf(this.nodes).relay, sinceMs: this.#chance.oneOf([0, 0, 1_000, 5_000]) };
  }

  #reader(name: string, link: Link, feed$: Reader['feed$']): Reader {
    return { name, link, feed$, observer: this.#observer(name, feed$()) };
  }

  #observer(name: string, feed$: Observable<RelayedEvent>, subscribesAgain = false): Observer {
    const observer = new Observer(feed$, this.scheduler, subscribesAgain);
    this.observers.push({ name, observer });
    return observer;
  }

  #feed$(name: string): Observable<RelayedEvent> {
    return relayFeed$(addressOf(name), this.#options);
  }

  get #options(): RelayFeedOptions {
    const { scheduler } = this;
    return {
      ...{ scheduler, maxFeedStops: Infinity, connectTimeoutMs: 1_000, idleTimeoutMs: 2_000 },
      backoff: { scheduler, random: this.#chance.random, initialDelayMs: 100, maxDelayMs: 800 },
    };
  }
}

const addressOf = (name: string): string => `http://${name}.example/feed`;

/** The faults, by name. Each returns what it has done. */
const faults: Readonly<Record<string, (world: World, chance: Chance) => string>> = {
  'source drops': ({ feeds }, chance) => {
    const feed = chance.oneOf(feeds);
    feed.drop();
    return nameOf(feeds, feed);
  },
  'source drops twice': (world, chance) => {
    const feed = chance.oneOf(world.feeds);
    const againMs = ms(chance, 300, 1_200);
    feed.drop();
    world.later(againMs, () => feed.drop());
    return `${nameOf(world.feeds, feed)}, again after ${againMs} ms`;
  },
  'outage of a source': (world, chance) => {
    const feed = chance.oneOf(world.feeds);
    const downMs = ms(chance, 500, 7_000);
    feed.isRefused = true;
    feed.drop();
    world.later(downMs, () => (feed.isRefused = false));
    return `${nameOf(world.feeds, feed)} for ${downMs} ms`;
  },
  'source stalls': ({ feeds }, chance) => {
    const feed = chance.oneOf(feeds);
    feed.stall();
    return nameOf(feeds, feed);
  },
  'source stops': ({ feeds }, chance) => {
    const feed = chance.oneOf(feeds);
    feed.stop();
    return nameOf(feeds, feed);
  },
  restart: (world, chance) => restarted(world, chance, true),
  kill: (world, chance) => restarted(world, chance, false),
  'link of a relay is cut': ({ nodes }, chance) => {
    const { name, upstream } = chance.oneOf(nodes.slice(2));
    upstream?.cut();
    return name;
  },
  'link of a relay stalls': ({ nodes }, chance) => {
    const { name, upstream } = chance.oneOf(nodes.slice(2));
    upstream?.stall();
    return name;
  },
  'link of a page is cut': ({ links }, chance) => {
    const link = chance.oneOf(links);
    link.cut();
    return String(links.indexOf(link));
  },
  'link of a page stalls': ({ links }, chance) => {
    const link = chance.oneOf(links);
    link.stall();
    return String(links.indexOf(link));
  },
  'page is slow': ({ links }, chance) => {
    const link = chance.oneOf(links);
    const slowMs = ms(chance, 200, 2_500);
    link.slow(slowMs);
    return `${links.indexOf(link)} for ${slowMs} ms`;
  },
  'page joins anew': (world, chance) => {
    const reader = chance.oneOf([...world.pages, ...world.tabs]);
    world.joinAnew(reader);
    return reader.name;
  },
  'page moves': (world, chance) => {
    const link = chance.oneOf(world.links);
    const node = chance.oneOf(world.nodes);
    world.moveTo(link, node);
    if (chance.isTrue(0.8)) link.cut();
    else link.stall();
    return `${world.links.indexOf(link)} to ${node.name}`;
  },
};

const nameOf = (feeds: readonly DirectFeed[], feed: DirectFeed): string =>
  `${['a', 'b', 'of the direct reader'][feeds.indexOf(feed)]}`;

const restarted = (world: World, chance: Chance, isGraceful: boolean): string => {
  const node = chance.oneOf(world.nodes);
  const downMs = ms(chance, 10, 4_000);
  world.end(node, isGraceful);
  world.later(downMs, () => world.start(node));
  return `${node.name} for ${downMs} ms`;
};

const ms = (chance: Chance, least: number, most: number): number => Math.round(chance.between(least, most));

/** Runs a seed: random faults over half a minute, then peace. */
export const simulate = (seed: number): Run => {
  const chance = createChance(seed);
  return inVirtualTime(
    chance,
    (world) => {
      world.pass(ms(chance, 100, 2_000));
      for (let left = Math.ceil(chance.between(2, 9)); left > 0; left -= 1) {
        const name = chance.isTrue(0.25)
          ? chance.oneOf(['page moves', 'page joins anew'])
          : chance.oneOf(Object.keys(faults));
        const what = faults[name]!(world, chance);
        world.note(`${name} ${what}`);
        world.faults[name] = (world.faults[name] ?? 0) + 1;
        world.pass(chance.isTrue(0.3) ? ms(chance, 1, 200) : ms(chance, 200, 3_000));
      }
      world.note('peace');
      world.heal();
      world.pass(healMs);
    },
    seed,
  );
};

/** Runs a scenario in a new world, and checks what the pages have received. */
export const inVirtualTime = (chance: Chance, scenario: (world: World) => void, seed = 0): Run => {
  // Imported in jest, pages would send requests over `fetch`, whose promises never resolve in virtual time.
  if ((usedRequest$ as unknown) !== relayRequest$)
    throw new Error('Bundle the simulation: see test/support/simulation.mjs.');
  const realNow = Date.now;
  const realRandom = Math.random;
  const { stackTraceLimit } = Error;
  let world: World | undefined;
  Date.now = () => world?.now ?? begin;
  Math.random = chance.random;
  // A run creates thousands of failures, and formatting their stacks would take most of its time.
  Error.stackTraceLimit = 0;
  try {
    world = new World(chance);
    scenario(world);
    const { service, feeds, now } = world;
    const violations = world.observers.flatMap(({ name, observer }) =>
      observer.check(service.sent, feeds, now).map((what) => `${name}: ${what}`),
    );
    const observers = world.observers.map(({ observer }) => observer);
    const sum = (count: (observer: Observer) => number) => observers.reduce((total, each) => total + count(each), 0);
    return {
      ...{
        seed,
        violations,
        kinds: kindsOf(violations),
        faults: world.faults,
        frames: service.sent.length,
        virtualMs: now - begin,
      },
      received: sum(({ received }) => received.size),
      gaps: sum(({ gaps }) => gaps.length),
      windows: sum(({ windows }) => windows.length),
      completeWindows: sum(({ windows }) => windows.filter(({ complete }) => complete).length),
      timeline: violations.length === 0 ? [] : timelineOf(world),
    };
  } finally {
    world?.close();
    [Date.now, Math.random, Error.stackTraceLimit] = [realNow, realRandom, stackTraceLimit];
  }
};

const kindOf = (violation: string): string => {
  if (violation.includes('in no gap')) return 'lost frames outside gaps';
  if (violation.includes('says complete')) return 'complete windows that are wrong';
  if (/frame \d+ follows \d+$/.test(violation)) return 'frames received twice';
  return / of \d+ follows/.test(violation) ? 'times that go back' : 'other';
};

const kindsOf = (violations: readonly string[]): Record<string, number> => {
  const kinds: Record<string, number> = {};
  for (const kind of violations.map(kindOf)) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return kinds;
};

/** The faults, and the events of the pages except frames and watermarks, in order. */
const timelineOf = ({ timeline, observers, service }: World): readonly string[] => {
  const ofReaders = observers.flatMap(({ name, observer: { events } }) =>
    events.flatMap(({ at, event }) => {
      if (event.type === 'frame' || event.type === 'watermark' || event.type === 'value') return [];
      const times = event.type === 'gap' ? `${event.from - begin}..${event.to - begin}` : event.at - begin;
      const code = 'failure' in event ? `, ${event.failure.code} ${event.failure.endedAt - begin}` : '';
      return [`${at - begin} ${name}: ${event.type} (${times}${code})`];
    }),
  );
  const { delayMs, deliveryDelayMs } = service.plan;
  const inOrder = [...timeline, ...ofReaders].toSorted((one, other) => Number.parseInt(one) - Number.parseInt(other));
  return [`frames are ${delayMs} ms late, deliveryDelayMs: ${deliveryDelayMs}`, ...inOrder];
};
