import { parseArgs } from 'node:util';
import type { Feed } from '../../index.js';
import { usageError } from '../cli-error.js';
import {
  type CommandName,
  type CommandSpec,
  commands,
  type demoOptions,
  isCommand,
  type listenOptions,
  type recordOptions,
  type replayOptions,
  type serveOptions,
} from './commands.js';
import type { OptionTable, OptionValues } from './option.js';
import { suggest } from './suggest.js';

/** What `demo` was told. */
export interface DemoCommand {
  readonly command: 'demo';
  readonly feed: Feed;
  readonly options: OptionValues<typeof demoOptions>;
}

/** What `listen` was told. */
export interface ListenCommand {
  readonly command: 'listen';
  readonly feed: Feed;
  readonly options: OptionValues<typeof listenOptions>;
}

/** What `record` was told. */
export interface RecordCommand {
  readonly command: 'record';
  readonly feed: Feed;
  readonly options: OptionValues<typeof recordOptions>;
}

/** What `replay` was told. */
export interface ReplayCommand {
  readonly command: 'replay';
  readonly file: string;
  readonly options: OptionValues<typeof replayOptions>;
}

/** What `serve` was told. */
export interface ServeCommand {
  readonly command: 'serve';
  readonly options: OptionValues<typeof serveOptions>;
}

/** What the arguments ask for. */
export type Command =
  | DemoCommand
  | ListenCommand
  | RecordCommand
  | ReplayCommand
  | ServeCommand
  | { readonly command: 'help'; readonly topic?: CommandName }
  | { readonly command: 'version' };

/**
 * Reads the arguments. Pure; an error names what is wrong and never repeats a value, which might be a key in the wrong place.
 *
 * @param args - without the program's own name
 * @throws CliError with the exit code for wrong usage
 */
export const parse = (args: readonly string[]): Command => {
  const [first, ...rest] = args;
  if (first === '--version' || first === '-v') return { command: 'version' };
  if (first === '--help' || first === '-h') return { command: 'help' };
  if (first === 'help') return help(rest[0]);
  if (first === undefined) throw usageError(`Give a command: ${Object.keys(commands).join(', ')}.`);
  if (!isCommand(first)) throw unknownCommand(first);

  const { values, words } = readOptions(rest, commands[first].options);
  if (values['help'] === true) return { command: 'help', topic: first };
  return { command: first, ...readWords[commands[first].takes](first, words), options: values } as Command;
};

/** Reads what follows the name of a command, besides its options. */
const readWords: Readonly<Record<CommandSpec['takes'], (name: string, words: readonly string[]) => object>> = {
  feed: (name, words) => {
    if (words.length > 1) throw usageError(`${name} takes one feed.`);
    return { feed: feedOf(words[0]) };
  },
  file: (name, words) => {
    if (words.length !== 1) throw usageError(`${name} takes one file.`);
    return { file: words[0] };
  },
  nothing: (name, words) => {
    if (words.length > 0) throw usageError(`${name} takes options alone.`);
    return {};
  },
};

const help = (topic: string | undefined): Command => {
  if (topic === undefined) return { command: 'help' };
  if (!isCommand(topic)) throw unknownCommand(topic);
  return { command: 'help', topic };
};

const unknownCommand = (name: string): Error => {
  if (isKeyOption(name)) return keyInArguments();
  return usageError(
    `There is no command${quoted(name)}.${suggest(name, Object.keys(commands)) || ` The commands are ${Object.keys(commands).join(', ')}.`}`,
  );
};

const feedOf = (word: string | undefined): Feed => {
  if (word === undefined || word === 'market' || word === 'raw') return word ?? 'market';
  throw usageError(`There is no feed${quoted(word)}. The feeds are market and raw.`);
};

const readOptions = (
  args: readonly string[],
  table: OptionTable,
): { values: Record<string, unknown>; words: string[] } => {
  const config = Object.entries(table).map(([name, { value, short }]) => [
    name,
    { type: value === undefined ? ('boolean' as const) : ('string' as const), ...(short && { short }) },
  ]);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(config) as Record<string, { type: 'boolean' | 'string' }>,
    strict: false,
    tokens: true,
  });
  const values: Record<string, unknown> = {};
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind === 'option') values[token.name] = readOption(token, table);
  }
  return { values, words };
};

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

const readOption = ({ name, rawName, value, inlineValue }: OptionToken, table: OptionTable): unknown => {
  const spec = Object.hasOwn(table, name) ? table[name] : undefined;
  if (spec === undefined) throw unknownOption(name, rawName, table);
  if (spec.value === undefined && inlineValue === true) throw usageError(`--${name} takes no value.`);
  const isMissing = spec.value !== undefined && (value === undefined || (inlineValue !== true && /^-./.test(value)));
  if (isMissing) throw usageError(`--${name} needs a value: ${spec.value}.`);
  const read = spec.read(value ?? '');
  if (read === undefined) throw usageError(`--${name} must be ${spec.allowed}.`);
  return read;
};

const unknownOption = (name: string, rawName: string, table: OptionTable): Error => {
  if (isKeyOption(rawName)) return keyInArguments();
  const known = Object.keys(table).map((option) => `--${option}`);
  return usageError(`There is no option${quoted(rawName)}.${suggest(`--${name}`, known)}`);
};

const isKeyOption = (name: string): boolean => /^-+(x-)?(api-?)?(key|token)(=|$)/i.test(name);

const keyInArguments = (): Error =>
  usageError(
    'The API key is never taken from an argument: it would stay in the history of the shell and show in the list of processes. ' +
      'Set TRADE_FEED_API_KEY, or put the key into a file and give --key-file FILE.',
  );

/** Repeats a word only when it looks like one that was mistyped. */
const quoted = (word: string): string => (/^-{0,2}[a-z][a-z-]{0,15}$/i.test(word) ? ` ${word}` : ' of that name');
