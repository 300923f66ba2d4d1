import { Argument, Option } from 'commander';
import type { Feed } from '../index.js';
import { isNumber, isText } from '../protocol/type-guards.js';
import { aName, integerIn, MAX_TIMER_MS, mustBe, positiveCount, type Rule } from '../protocol/validate.js';
import type { From } from '../log/index.js';
import { usageError } from './errors.js';
import type { CliContext } from './terminal.js';

export type Typed<T> = Option & { readonly ofType?: T };
/** The options of a command under commander's names: `maxFileSize` for `--max-file-size`. */
export type Options = Readonly<Record<string, Typed<unknown>>>;
export type ValuesOf<O extends Options> = {
  readonly [Name in keyof O]?: O[Name] extends Typed<infer T> ? T | undefined : never;
};

export interface CommandSpec<A, O extends Options> {
  readonly argument?: TypedArgument<A>;
  /** What follows the name of the command, if it needs an option. @defaultValue the options and the argument */
  readonly usage?: string;
  readonly summary: string;
  readonly description: readonly string[];
  readonly options: O;
  readonly examples: readonly (readonly [line: string, effect: string])[];
  /** Returns the exit code. Throws the failure that ended the command. */
  run(argument: A, values: ValuesOf<O>, context: CliContext): Promise<number>;
}

export type AnyCommand = CommandSpec<unknown, Options>;

/** Declares a command. In the description, an empty line starts a paragraph; other line breaks don't count. */
export const defineCommand = <A, O extends Options>(
  spec: Omit<CommandSpec<A, O>, 'description'> & { readonly description: string },
): CommandSpec<A, O> => ({
  ...spec,
  description: spec.description.split(/\n\s*\n/).map((paragraph) => paragraph.trim().replaceAll(/\s+/g, ' ')),
});

/** What the text of an option becomes, and the rule for that. */
interface OptionRule<T> extends Rule {
  readonly parse: (text: string) => T | undefined;
}

export const parsed = <T>(parse: OptionRule<T>['parse'], rule: Rule): OptionRule<T> => ({ ...rule, parse });

/** Parses a value. The error for an invalid one doesn't show it: it may be a secret. */
export const valueOf = <T>(name: string, { parse, is, allowed }: OptionRule<T>, text: string): T => {
  const value = parse(text);
  if (!is(value)) throw usageError(`${name} ${mustBe(allowed)}.`);
  return value as T;
};

/** Creates an option with a value, or a flag if there's no rule for a value. */
export const option = <T = boolean>(flags: string, help: string, rule?: OptionRule<T>): Typed<NoInfer<T>> => {
  const created = new Option(flags, help);
  return rule ? created.argParser((text) => valueOf(`--${created.name()}`, rule, text)) : created;
};

export const whole = (text: string): number => (/^\d+$/.test(text) ? Number(text) : NaN);
export const decimal = (text: string): number => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN);

/** Parses an amount, in the smallest unit. */
const withUnit = (units: Readonly<Record<string, number>>) => (text: string) => {
  const amount = text.replace(/[a-z]*$/i, '');
  return decimal(amount) * (units[text.slice(amount.length)] ?? NaN);
};
const time = withUnit({ '': 1_000, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 });
const age = withUnit({ s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 });
const size = withUnit({ '': 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 });
const roundSize = (text: string): number => Math.floor(size(text.toLowerCase().replace(/b$/, '')));

const between = (least: number, most: number, allowed: string): Rule => ({
  allowed,
  is: (value) => isNumber(value) && value >= least && value <= most,
});

const maxTime = 'a time of at most 24 days, such as 30, 1.5s, 10m or 2h';
export const timeMs = parsed(time, between(0, MAX_TIMER_MS, maxTime));
export const ageMs = parsed(age, between(1, Number.MAX_SAFE_INTEGER, 'an age such as 30m, 12h or 7d'));
export const sizeBytes = parsed(roundSize, { ...positiveCount, allowed: 'a size such as 500kB, 100MB, 2GB or 1TB' });

const multiple = between(Number.MIN_VALUE, 1e6, 'a number above 0, up to 1000000, or max');
export const speed = parsed((text) => (text === 'max' ? Infinity : decimal(text)), {
  ...multiple,
  is: (value) => value === Infinity || multiple.is(value),
});

export const placeIn = (text: string): From => {
  if (text === 'earliest' || text === 'latest') return text;
  const [offset, agoMs] = [whole(text), age(text)];
  if (!Number.isNaN(offset)) return { offset };
  return { time: Number.isNaN(agoMs) ? Date.parse(text) : Date.now() - agoMs };
};

export const anyText = parsed(String, { allowed: 'followed by a value', is: (value) => value !== '' });

export const engineUrl = parsed(String, {
  allowed:
    'an address such as nats://127.0.0.1:4222 or redis://127.0.0.1:6379 (in its password, write / as %2F, ? as %3F and # as %23)',
  is: (text) => /^(nats|tls|rediss?):\/\/./.test(text as string) && URL.canParse(text as string),
});

export const oneOf = <const W extends string>(...words: readonly W[]): OptionRule<W> => ({
  allowed: words.join(' or '),
  parse: (text) => words.find((word) => word === text),
  is: isText,
});

type TypedArgument<A> = Argument & { readonly ofType?: A };

export const argument = <A>(name: string, help: string): TypedArgument<A> => new Argument(name, help);

export const wordArgument = <const W extends string>(name: string, help: string, ...words: readonly W[]) => {
  const created = argument<W>(name, help);
  return created.argParser((word) => valueOf(`The ${created.name()}`, oneOf(...words), word));
};

export const feedName = wordArgument<Feed>('[feed]', 'market or raw (default: market)', 'market', 'raw');

export const service = {
  baseUrl: option('--base-url <URL>', 'the address of the service (default: TRADE_FEED_BASE_URL)', anyText),
  keyFile: option('--key-file <FILE>', 'read the API key from a file (default: TRADE_FEED_API_KEY)', anyText),
  ca: option('--ca <FILE>', 'trust only the CA certificates in this PEM file', anyText),
};
export type ServiceValues = ValuesOf<typeof service>;

export const duration = option('--duration <TIME>', 'end after this time: 30, 1.5s, 10m, 2h', timeMs);

export const connection = {
  ...service,
  retries: option('--retries <N>', 'stop after N reconnects in a row (default: never)', parsed(whole, integerIn(0))),
  duration,
};
export type ConnectionValues = ValuesOf<typeof connection>;

export const cluster = {
  cluster: option(
    '--cluster <URL>',
    'share one connection with other replicas, over nats:// or redis:// (default: TRADE_FEED_CLUSTER, if it is set)',
    engineUrl,
  ),
  account: option(
    '--account <NAME>',
    'the name under which the replicas of an account find each other (default: main)',
    parsed(String, aName),
  ),
};

export const replica = {
  ...cluster,
  replica: option(
    '--replica <NAME>',
    'the name of this replica in the cluster (default: host and process id)',
    parsed(String, aName),
  ),
};
export type ReplicaValues = ValuesOf<typeof replica>;

export const count = option('-n, --count <N>', 'end after N frames', parsed(whole, positiveCount));

export const output = {
  status: option('--no-status', 'write plain lines to stderr on a terminal, without a status line'),
  quiet: option('-q, --quiet', 'write only errors to stderr'),
};
