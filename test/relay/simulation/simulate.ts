import { map, type Observable, VirtualTimeScheduler } from 'rxjs';
import { relayFeed$, type RelayFeedOptions } from '../../../src/browser/index.js';
import { relayRequest$ as usedRequest$ } from '../../../src/browser/relay-request.js';
import type { RelayedEvent } from '../../../src/protocol/event.js';
import { createRelay, type Relay, type RelayTopic } from '../../../src/relay/index.js';
import { type Chance, createChance } from '../../cluster/simulation/chance.js';
import { createLink, type Link, relayRequest$, resetNetwork } from './network.js';
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

/** The world of a run: a service, two relays of direct feeds, two relays of those, and two pages. */
export class World {
  readonly scheduler = new VirtualTimeScheduler(undefined, Infinity);
  readonly timeline: string[] = [];
  readonly faults: Record<string, number> = {};
  readonly service: Service;
  nodes: readonly Node[] = [];
  pages: readonly { readonly link: Link; readonly observer: Observer }[] = [];
  readonly #chance: Chance;
  readonly #holds: boolean;
  readonly #lingerMs: number;

  constructor(chance: Chance) {
    resetNetwork();
    this.#chance = chance;
    this.#holds = chance.isTrue(0.7);
    this.#lingerMs = chance.oneOf([0, 5_000]);
    this.scheduler.frame = begin;
    this.service = new Service(this.scheduler, chance);
    const direct = ['a', 'b'].map((name) => this.#node(name, new DirectFeed(this.service, this.scheduler), undefined));
    this.nodes = [...direct, ...direct.map((node, n) => this.#node(`${node.name}${n}`, undefined, node))];
    for (const node of this.nodes) this.start(node);
    this.pages = [0, 1].map((n) => {
      const target = { relay: chance.oneOf(this.nodes).relay, select: chance.oneOf(topics) };
      const link = this.#link(`page${n}`, target);
      return { link, observer: new Observer(this.#feed$(`page${n}`), this.scheduler) };
    });
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
    const relay = createRelay(source, { scheduler, heartbeatMs: 1_000, lingerMs: this.#lingerMs });
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
    for (const node of this.nodes) {
      if (node.feed !== undefined) node.feed.isRefused = false;
      this.start(node);
    }
    for (const { link } of this.pages) if (link.target.relay === undefined) this.moveTo(link, this.nodes[0] as Node);
  }

  moveTo(link: Link, { relay }: Node): void {
    link.target = { ...link.target, relay };
  }

  // Keeps the links of a process that was replaced at the same address.
  #lead(node: Node, from: Relay | undefined, to: Relay | undefined, cuts = false): void {
    const links = [...this.#downstream(node), ...this.pages.map(({ link }) => link)];
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

  #feed$(name: string): Observable<RelayedEvent> {
    const { scheduler } = this;
    const options: RelayFeedOptions = {
      ...{ scheduler, maxFeedStops: Infinity, connectTimeoutMs: 1_000, idleTimeoutMs: 2_000 },
      backoff: { scheduler, random: this.#chance.random, initialDelayMs: 100, maxDelayMs: 800 },
    };
    return relayFeed$(addressOf(name), options);
  }
}

const addressOf = (name: string): string => `http://${name}.example/feed`;

/** The faults, by name. Each returns what it has done. */
const faults: Readonly<Record<string, (world: World, chance: Chance) => string>> = {
  'source drops': ({ nodes }, chance) => {
    const { name, feed } = chance.oneOf(nodes.slice(0, 2));
    feed?.drop();
    return name;
  },
  'outage of a source': (world, chance) => {
    const { name, feed } = chance.oneOf(world.nodes.slice(0, 2));
    const downMs = ms(chance, 500, 7_000);
    if (feed === undefined) return name;
    feed.isRefused = true;
    feed.drop();
    world.later(downMs, () => (feed.isRefused = false));
    return `${name} for ${downMs} ms`;
  },
  'source stalls': ({ nodes }, chance) => {
    const { name, feed } = chance.oneOf(nodes.slice(0, 2));
    feed?.stall();
    return name;
  },
  'source stops': ({ nodes }, chance) => {
    const { name, feed } = chance.oneOf(nodes.slice(0, 2));
    feed?.stop();
    return name;
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
  'link of a page is cut': ({ pages }, chance) => {
    chance.oneOf(pages).link.cut();
    return '';
  },
  'link of a page stalls': ({ pages }, chance) => {
    chance.oneOf(pages).link.stall();
    return '';
  },
  'page moves': (world, chance) => {
    const page = chance.oneOf(world.pages);
    const node = chance.oneOf(world.nodes);
    world.moveTo(page.link, node);
    if (chance.isTrue(0.8)) page.link.cut();
    else page.link.stall();
    return `${world.pages.indexOf(page)} to ${node.name}`;
  },
};

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
        const name = chance.isTrue(0.3) ? 'page moves' : chance.oneOf(Object.keys(faults));
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
    const { service, nodes, pages, now } = world;
    const feeds = nodes.flatMap(({ feed }) => feed ?? []);
    const violations = pages.flatMap(({ observer }, n) =>
      observer.check(service.sent, feeds, now).map((what) => `page ${n}: ${what}`),
    );
    const observers = pages.map(({ observer }) => observer);
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
      timeline: violations.length === 0 ? [] : timelineOf(world, observers),
    };
  } finally {
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
const timelineOf = ({ timeline }: World, observers: readonly Observer[]): readonly string[] => {
  const ofPages = observers.flatMap(({ events }, n) =>
    events.flatMap(({ at, event }) => {
      if (event.type === 'frame' || event.type === 'watermark' || event.type === 'value') return [];
      const times = event.type === 'gap' ? `${event.from - begin}..${event.to - begin}` : event.at - begin;
      const code = 'failure' in event ? `, ${event.failure.code} ${event.failure.endedAt - begin}` : '';
      return [`${at - begin} page ${n}: ${event.type} (${times}${code})`];
    }),
  );
  return [...timeline, ...ofPages].toSorted((one, other) => Number.parseInt(one) - Number.parseInt(other));
};
