import { hostname } from 'node:os';
import { randomBytes } from 'node:crypto';
import { feedOptionRules, resolveTicketOptions, type TicketSettings, type TradeFeedOptions } from '../options.js';
import {
  aBoolean,
  checkRequired,
  invalidOption,
  objectWith,
  positiveCount,
  positiveMs,
  type Rule,
  validated,
} from '../protocol/rules.js';
import type { ClusterEngine } from './engine/cluster-engine.js';

/** The options of the election of a cluster. */
export interface ClusterElectionOptions {
  /** The engine that connects the replicas. */
  readonly engine: ClusterEngine;
  /** The name under which replicas find each other: letters, digits, `-` and `_`. Replicas with the same API key need the same name. It is never the key. */
  readonly account: string;
  /** The name of this replica: letters, digits, `-` and `_`. A random part is added. @defaultValue host and process id */
  readonly replica?: string | undefined;
  /** Whether this replica may own the connection. With `false` it only follows. @defaultValue `true` */
  readonly canOwn?: boolean | undefined;
  /** How long an owner that does not answer keeps the ownership, in ms. @defaultValue 2 000 */
  readonly leaseMs?: number | undefined;
  /** Time between two renewals of the ownership, in ms; at most a third of `leaseMs`. @defaultValue 500 */
  readonly renewMs?: number | undefined;
  /** An owner sends no handshake in the last part of its lease, in ms; less than `leaseMs` minus `renewMs`. @defaultValue 200 */
  readonly marginMs?: number | undefined;
  /** Silence of the owner in ms after which a replica asks it; less than `leaseMs`, and more than the 250 ms between two beats. @defaultValue 600 */
  readonly suspectMs?: number | undefined;
  /** Size limit of a message in bytes. A larger frame is sent in parts. @defaultValue 262 144 (256 KiB) */
  readonly batchBytes?: number | undefined;
  /** How long a hand-over may take, in ms. @defaultValue 5 000 */
  readonly handOverMs?: number | undefined;
}

/** The options of a cluster: those of the feed, which each replica needs, and those of the election. */
export interface ClusterOptions extends TradeFeedOptions, ClusterElectionOptions {}

/** The validated options of the election, with the defaults. */
export interface ClusterElectionSettings {
  readonly engine: ClusterEngine;
  readonly account: string;
  readonly replica: string;
  readonly canOwn: boolean;
  readonly leaseMs: number;
  readonly renewMs: number;
  readonly marginMs: number;
  readonly suspectMs: number;
  readonly batchBytes: number;
  readonly handOverMs: number;
}

/** The validated options of a cluster, with the defaults. */
export interface ClusterSettings extends ClusterElectionSettings {
  readonly feed: TicketSettings;
}

const defaults = Object.freeze({
  canOwn: true,
  ...{ leaseMs: 2_000, renewMs: 500, marginMs: 200, suspectMs: 600 },
  batchBytes: 256 * 1024,
  handOverMs: 5_000,
});

const aName: Rule = {
  allowed: '1 to 80 letters, digits, - or _',
  is: (v) => typeof v === 'string' && /^[\w-]{1,80}$/.test(v),
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
  batchBytes: {
    allowed: 'a whole number of bytes, 1024 or more',
    is: (v) => positiveCount.is(v) && (v as number) >= 1024,
  },
  handOverMs: positiveMs,
};

/**
 * Validates the options of a cluster, and adds the defaults.
 *
 * @throws TradeFeedError with code `invalid-options`
 */
export const resolveClusterOptions = (options: ClusterOptions): ClusterSettings => {
  const own = Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(rules, name)));
  const rest: TradeFeedOptions & Readonly<Record<string, unknown>> = Object.fromEntries(
    Object.entries(options).filter(([name]) => !Object.hasOwn(rules, name)),
  );
  const unknown = Object.keys(rest).find((name) => !Object.hasOwn(feedOptionRules, name));
  if (unknown !== undefined) validated({ [unknown]: rest[unknown] }, { ...rules, ...feedOptionRules });
  const settings = resolveElectionOptions(own as unknown as ClusterElectionOptions);
  const feed = resolveTicketOptions(rest);
  if (feed.receiveIn === 'worker') throw invalidOption('receiveIn', "'main' in a cluster");
  return { ...settings, feed };
};

/**
 * Validates the options of the election, and adds the defaults.
 *
 * @param prefix - precedes each name in the error, for a nested object
 * @throws TradeFeedError with code `invalid-options`
 */
export const resolveElectionOptions = (options: ClusterElectionOptions, prefix = ''): ClusterElectionSettings => {
  checkRequired(options, { engine: rules.engine, account: rules.account }, prefix);
  const settings = { replica: defaultReplica(), ...defaults, ...validated(options, rules, prefix) };
  const { leaseMs, renewMs, marginMs, suspectMs } = settings;
  const invalid = (name: string, allowed: string, value: number) => invalidOption(prefix + name, allowed, value);
  if (renewMs > leaseMs / 3) throw invalid('renewMs', `at most a third of leaseMs (${leaseMs})`, renewMs);
  if (marginMs >= leaseMs - renewMs)
    throw invalid('marginMs', `less than leaseMs minus renewMs (${leaseMs - renewMs})`, marginMs);
  if (suspectMs <= 250 || suspectMs >= leaseMs)
    throw invalid('suspectMs', `more than 250, and less than leaseMs (${leaseMs})`, suspectMs);
  return settings;
};

const defaultReplica = (): string =>
  `${hostname()
    .replaceAll(/[^\w-]/g, '-')
    .slice(0, 60)}-${process.pid}`;

/** Returns the id of a run of a replica: its name, and a random part that no other run has. */
export const replicaId = (replica: string): string => `${replica}-${randomBytes(6).toString('hex')}`;
