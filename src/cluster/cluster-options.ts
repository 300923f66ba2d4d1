import { createHash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { feedOptionRules, resolveTicketOptions, type TicketSettings, type TradeFeedOptions } from '../feed/options.js';
import type { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import type { Feed } from '../protocol/feed.js';
import {
  aBoolean,
  aCount,
  aName,
  anObject,
  checkRequired,
  durationMs,
  integerIn,
  invalidOption,
  objectWith,
  oneOf,
  positiveMs,
  type Rule,
  validated,
} from '../protocol/validate.js';
import type { ClusterEngine } from './engine.js';
import { timing, timingDefaults } from './election/timing.js';

/** The options of the election of a cluster. */
export interface ClusterElectionOptions {
  /** The engine that connects the replicas. */
  readonly engine: ClusterEngine;
  /**
   * The name replicas find each other by: letters, digits, `-` and `_`. Replicas with the same API key need the same
   * name; replicas of another feed or `baseUrl` need another one. Never use the key itself.
   */
  readonly account: string;
  /** The name of this replica: letters, digits, `-` and `_`, plus a random part. @defaultValue host and process id */
  readonly replica?: string | undefined;
  /** Whether this replica may own the connection. `false`: it only follows. @defaultValue `true` */
  readonly canOwn?: boolean | undefined;
  /** How long an unresponsive owner keeps the ownership, in ms. @defaultValue 2 000 */
  readonly leaseMs?: number | undefined;
  /** How often the owner renews its ownership, in ms; at most a third of `leaseMs`. @defaultValue 500 */
  readonly renewMs?: number | undefined;
  /** The end of a lease in which no handshake is sent, in ms; less than `leaseMs` minus `renewMs`. @defaultValue 200 */
  readonly marginMs?: number | undefined;
  /**
   * How long the owner may be silent before a replica asks it, in ms; less than `leaseMs`, and more than the 250 ms
   * between two beats. @defaultValue 600
   */
  readonly suspectMs?: number | undefined;
  /** Size limit of a message in bytes. Larger frames are sent in parts. @defaultValue 262 144 (256 KiB) */
  readonly batchBytes?: number | undefined;
  /**
   * How much of the past a replica emits first when it starts, in ms, as far as the engine's store still has it. Counts by
   * the owner's clock; without an owner, by its own. Frames keep their times. @defaultValue 0: only what follows
   */
  readonly sinceMs?: number | undefined;
  /**
   * What the engine's store keeps of the messages, for replicas that were cut off or start late: the same for all
   * replicas. @defaultValue a store that exists keeps its limits; a new one keeps 60 000 ms and 64 MiB, in memory
   */
  readonly line?: ClusterLineOptions | undefined;
  /** How long a hand-over may take, in ms. @defaultValue 5 000 */
  readonly handOverMs?: number | undefined;
}

/** What the store of a cluster keeps. */
export interface ClusterLineOptions {
  /**
   * Where a new store of NATS keeps the messages: with `'file'`, they survive a restart of the server. Redis keeps them as
   * it's configured. @defaultValue `'memory'`
   */
  readonly storage?: 'memory' | 'file' | undefined;
  /** How old a message may get, in ms: at least 100. @defaultValue 60 000 */
  readonly maxAgeMs?: number | undefined;
  /** How large all messages may get, in bytes. @defaultValue 67 108 864 (64 MiB) */
  readonly maxBytes?: number | undefined;
}

/** Options of a cluster: those of the feed, which every replica needs, and those of the election. */
export interface ClusterOptions extends TradeFeedOptions, ClusterElectionOptions {}

type ClusterElectionSettings = {
  readonly [Name in keyof ClusterElectionOptions]-?: NonNullable<ClusterElectionOptions[Name]>;
};

export interface ClusterSettings extends ClusterElectionSettings {
  readonly feed: TicketSettings;
}

const defaults = Object.freeze({ canOwn: true, ...timingDefaults, batchBytes: 256 * 1024, sinceMs: 0, line: {} });

const lineRules: Readonly<Record<keyof ClusterLineOptions, Rule>> = {
  storage: oneOf('memory', 'file'),
  maxAgeMs: { allowed: 'a number of ms, 100 or more, or Infinity', is: (v) => typeof v === 'number' && v >= 100 },
  maxBytes: { allowed: 'a whole number of bytes above 0, or Infinity', is: aCount(1).is },
};

const rules: Readonly<Record<keyof ClusterElectionOptions, Rule>> = {
  engine: objectWith('compareAndSet', 'a ClusterEngine, for example memoryEngine()'),
  account: aName,
  replica: aName,
  canOwn: aBoolean,
  leaseMs: positiveMs,
  renewMs: positiveMs,
  marginMs: positiveMs,
  suspectMs: positiveMs,
  batchBytes: integerIn(1_024),
  sinceMs: durationMs,
  line: anObject,
  handOverMs: positiveMs,
};

/** @throws TradeFeedError with code `invalid-options` */
export const resolveClusterOptions = (options: ClusterOptions): ClusterSettings => {
  const all = { ...rules, ...feedOptionRules };
  validated(without(options, all), all);
  const settings = resolveElectionOptions(without(options, feedOptionRules));
  const feed = resolveTicketOptions(without(options, rules));
  if (feed.receiveIn === 'worker') throw invalidOption('receiveIn', "'main' in a cluster");
  return { ...settings, feed };
};

const without = <T extends object>(options: T, names: object): T =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !Object.hasOwn(names, name))) as T;

/**
 * @param prefix - precedes each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`
 */
export const resolveElectionOptions = (options: ClusterElectionOptions, prefix = ''): ClusterElectionSettings => {
  checkRequired(options, { engine: rules.engine, account: rules.account }, prefix);
  const settings = { replica: defaultReplica(), ...defaults, ...validated(options, rules, prefix) };
  validated(settings.line, lineRules, `${prefix}line.`);
  const { leaseMs, renewMs, marginMs, suspectMs } = settings;
  const check = (isValid: boolean, name: keyof typeof settings, allowed: string): void => {
    if (!isValid) throw invalidOption(prefix + name, allowed, settings[name]);
  };
  check(renewMs <= leaseMs / 3, 'renewMs', `at most a third of leaseMs (${leaseMs})`);
  check(marginMs < leaseMs - renewMs, 'marginMs', `less than leaseMs minus renewMs (${leaseMs - renewMs})`);
  const isBetween = suspectMs > timing.beatMs && suspectMs < leaseMs;
  check(isBetween, 'suspectMs', `more than ${timing.beatMs}, and less than leaseMs (${leaseMs})`);
  return settings;
};

const defaultReplica = (): string => {
  const host = hostname().replaceAll(/[^\w-]/g, '-');
  return `${host.slice(0, 60)}-${process.pid}`;
};

/** Returns how the key names a feed of a service: its host, and a hash of the address, because its path may be private. */
export const sourceOf = (feed: Feed, baseUrl: string): string => {
  const { host, href } = new URL(baseUrl);
  return `${feed} from ${host}#${hashOf(href.replace(/\/+$/, '')).slice(0, 10)}`;
};

/** Returns the id of a run: the replica's name, a random part, and a hash of what it streams. */
export const replicaId = (replica: string, source: string): string =>
  `${replica}-${randomBytes(6).toString('hex')}${hashOf(source).slice(0, 8)}`;

/** Creates the failure of a replica that streams something other than the owner of its account. */
export const misfit = (account: string, other: string, ours: string): TradeFeedError =>
  invalidOption(
    'account',
    `a name that all replicas use for one feed and one \`baseUrl\`: ` +
      `those of '${account}' stream ${other}, this one ${ours}`,
  );

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');
