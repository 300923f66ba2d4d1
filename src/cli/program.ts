import { Command, CommanderError } from 'commander';
import { createRequire } from 'node:module';
import { inspect } from 'node:util';
import { noop } from 'rxjs';
import { LogError } from '../log/log-error.js';
import { TradeFeedError } from '../protocol/failures/trade-feed-error.js';
import { printable } from '../protocol/printable.js';
import { watchOutputs, writeText } from './delivery.js';
import { CliError, ExitCode, exitCodeOf, exitCodeRows, failureWords, usageError } from './errors.js';
import type { AnyCommand } from './options.js';
import { type CliContext, helpColumns, say } from './terminal.js';

/** Imports each command when it's needed, so `listen` doesn't load the local service. */
const commands = {
  demo: () => import('./commands/demo.js'),
  listen: () => import('./commands/listen.js'),
  record: () => import('./commands/record.js'),
  replay: () => import('./commands/replay.js'),
  log: () => import('./commands/log.js'),
  serve: () => import('./commands/serve.js'),
  cluster: () => import('./commands/cluster.js'),
  doctor: () => import('./commands/doctor.js'),
} satisfies Readonly<Record<string, () => Promise<{ readonly command: AnyCommand }>>>;
type CommandName = keyof typeof commands;
export const commandNames = Object.keys(commands) as readonly CommandName[];

export const isCommand = (name: string | undefined): name is CommandName =>
  name !== undefined && Object.hasOwn(commands, name);

export const loadCommands = async (names = commandNames): Promise<Readonly<Record<string, AnyCommand>>> => {
  const loaded: Record<string, AnyCommand> = {};
  for (const name of names) loaded[name] = (await commands[name]()).command;
  return loaded;
};

/** Runs the command in the arguments. Prints an error to stderr. Returns the exit code once all output has left. */
export const run = async (args: readonly string[], given: CliContext): Promise<number> => {
  const { context, left, errorsLeft } = watchOutputs(given);
  const ended = (error: unknown): ExitCode => {
    const code = exitCodeOf(error);
    const help = `Try rx-trade-feed${isCommand(args[0]) ? ` ${args[0]}` : ''} --help.\n`;
    say(context.stderr, `rx-trade-feed: ${wordsOf(error)}\n${code === ExitCode.usage ? help : ''}`);
    return code;
  };
  const code = await runParsed(args, context).catch(ended);
  const cut = await left();
  const last = cut && code === ExitCode.ok ? ended(cut) : code;
  await errorsLeft();
  return last;
};

const runParsed = async (args: readonly string[], context: CliContext): Promise<number> => {
  const parsed = await parse(args);
  if ('run' in parsed) return parsed.run(context);
  await writeText(context, parsed.text, helpColumns);
  return ExitCode.ok;
};

const wordsOf = (error: unknown): string => {
  if (error instanceof TradeFeedError) return failureWords(error);
  if (error instanceof CliError || error instanceof LogError) return printable(error.message);
  return `an unexpected error occurred; this is a bug.\n${inspect(error)}`;
};

interface ParsedCommand {
  readonly command: string;
  readonly argument: unknown;
  readonly values: Readonly<Record<string, unknown>>;
  readonly run: (context: CliContext) => Promise<number>;
}

/**
 * Parses the arguments. Returns the command, or a text to print: help or the version. An error names the problem but
 * never shows a value, which may be a key in the wrong place.
 */
export const parse = async (args: readonly string[]): Promise<ParsedCommand | { readonly text: string }> => {
  const [first, topic] = args;
  if (first === 'help' && topic === exitCodesTopic) return { text: exitCodesText() };
  if (first === 'help')
    return topic === undefined ? parse(['--help']) : parse(isCommand(topic) ? [topic, '--help'] : [topic]);
  if (first === undefined) throw usageError(`Missing command. The commands are ${commandNames.join(', ')}.`);
  let parsed: ParsedCommand | undefined;
  let text = '';
  const program = createProgram((part) => (text += part));
  const loaded = await loadCommands(isCommand(first) ? [first] : isVersion(first) ? [] : commandNames);
  for (const [name, spec] of Object.entries(loaded)) addCommand(program, name, spec, (command) => (parsed = command));
  const [command = program] = isCommand(first) ? program.commands : [];
  try {
    const isWord = command === program && !first.startsWith('-');
    program.parse(isWord ? [first] : checkFlags(command, args), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw explain(error);
  }
  return parsed ?? { text };
};

// Commander prints the version as soon as it sees the flag, so what follows it needs no command.
const isVersion = (flag: string): boolean => flag === '-v' || flag === '--version';

/** Never exits the process: throws a CommanderError after a help text and for wrong arguments. */
const createProgram = (print: (text: string) => void): Command =>
  new Command('rx-trade-feed')
    .description('rx-trade-feed: the Real-time Trade Feed Service on the command line')
    .version(version(), '-v, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeOut: print, writeErr: noop, getOutHelpWidth: () => Infinity })
    .addHelpText('after', () =>
      sections(
        environment,
        ['Begin with', ['  # a live feed, without an account\n  rx-trade-feed demo']],
        ['More help', ['  rx-trade-feed <command> --help', `  rx-trade-feed help ${exitCodesTopic}`]],
      ),
    );

type OnParsed = (command: ParsedCommand) => void;

const addCommand = (program: Command, name: string, spec: AnyCommand, onParsed: OnParsed): void => {
  const { argument, usage, summary, description, options, examples } = spec;
  const command = program.command(name).summary(summary).description(description.join('\n\n'));
  if (usage !== undefined) command.usage(usage);
  if (argument !== undefined) command.addArgument(argument);
  for (const option of Object.values(options)) command.addOption(option);
  const lines: Section = ['Examples', examples.map(([line, effect]) => `  # ${effect}\n  ${line}`)];
  const after = `${sections(lines, ...('keyFile' in options ? [environment] : []))}\n\nExit codes: rx-trade-feed help ${exitCodesTopic}`;
  command.addHelpText('after', after);
  command.action(() => {
    // The feed is the only argument that can be missing.
    const given = argument && ((command.processedArgs as readonly unknown[])[0] ?? 'market');
    const values = command.opts();
    onParsed({ command: name, argument: given, values, run: (context) => spec.run(given, values, context) });
  });
};

// Found by the package's name, because the relative path differs between source and build.
const version = (): string =>
  (createRequire(import.meta.url)('rx-trade-feed/package.json') as { version: string }).version;

/**
 * Checks the flags before commander does. Commander would take `--json` for the value in `--key-file --json`, and repeat
 * the value of an unknown option. A negative number counts as a value: its option says what's allowed.
 */
const checkFlags = ({ options }: Command, args: readonly string[]): string[] =>
  args.map((arg, index) => {
    const flag = arg.replace(/=.*/s, '');
    const option = options.find(({ short, long }) => flag === short || flag === long);
    if (option === undefined) return arg.startsWith('-') ? flag : arg;
    const [hasValue, next = '--'] = [flag !== arg, args[index + 1]];
    if (hasValue && !option.required) throw usageError(`${flag} takes no value.`);
    if (option.required && !hasValue && /^-[^\d.]/.test(next)) throw usageError(`${flag} needs a value.`);
    return arg;
  });

/** Commander's message, without a word that doesn't look like a misspelled name: it may be a secret. */
const explain = ({ code, message }: CommanderError): Error => {
  const [, word = ''] = /'(.*?)'/.exec(message) ?? [];
  if (/^-+(x-)?(api-?)?(key|token)$/i.test(word)) return usageError(keyInArguments);
  const isShown = !code.startsWith('commander.unknown') || /^-{0,2}[a-z][a-z-]{0,15}$/i.test(word);
  const text = message.replace(/^error: /, '').replace(/\s*\(Did you mean (.*)\?\)/, '. Did you mean $1?');
  return usageError((isShown ? text : text.replace(` '${word}'`, '')).replace(/[^.?]$/, '$&.'));
};

const keyInArguments =
  "Don't pass the API key as an argument: the shell's history and the process list would show it. " +
  'Set TRADE_FEED_API_KEY, or write the key to a file and use --key-file FILE.';

const exitCodesTopic = 'exit-codes';

const exitCodesText = (): string =>
  `Exit codes:\n${exitCodeRows.map(([code, meaning]) => `  ${String(code).padEnd(6)}${meaning}\n`).join('')}`;

type Section = readonly [title: string, lines: readonly string[]];

const sections = (...all: readonly Section[]): string =>
  all.map(([title, lines]) => `\n${title}:\n${lines.join('\n')}`).join('\n');

const environment: Section = [
  'Environment',
  [
    '  TRADE_FEED_BASE_URL   the address of the service',
    "  TRADE_FEED_API_KEY    the API key; it isn't accepted as an argument",
    '  TRADE_FEED_CLUSTER    the address of the engine of a cluster',
    '  HTTPS_PROXY           the HTTP proxy, such as http://proxy.example:3128',
    '  NO_PROXY              hosts that are connected directly: example.com,10.0.0.1',
    '  NODE_USE_ENV_PROXY    0: HTTPS_PROXY has no effect',
    '  NO_COLOR              no colors',
  ],
];
