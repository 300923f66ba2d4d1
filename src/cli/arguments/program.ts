import { Command } from 'commander';
import { createRequire } from 'node:module';
import { noop } from 'rxjs';
import { commandNames, commands, type CommandSpec } from './commands.js';
import type { ParsedCommand } from './parsed-command.js';

/**
 * Creates the parser of the command line. It never exits the process: it throws a CommanderError after a help text and for wrong arguments.
 *
 * @param onCommand - called with the command and its arguments
 * @param print - called with parts of a help text, or with the version
 */
export const createProgram = (onCommand: (command: ParsedCommand) => void, print: (text: string) => void): Command => {
  const program = new Command('rx-trade-feed')
    .description('rx-trade-feed: the Real-time Trade Feed Service on the command line')
    .version(version(), '-v, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeOut: print, writeErr: noop, getOutHelpWidth: () => helpWidth });
  for (const name of commandNames) {
    const { argument, summary, description, options, examples, exitCodes }: CommandSpec = commands[name];
    const command = program.command(name).summary(summary).description(description.join('\n\n'));
    if (argument !== undefined) command.addArgument(argument);
    for (const option of options) command.addOption(option);
    command.addHelpText('after', () =>
      sections(
        ['Examples', examples.map(([line, effect]) => `  # ${effect}\n  ${line}`)],
        ...(options.some(({ long }) => long === '--key-file') ? [environment] : []),
        ['Exit codes', Object.entries(exitCodes).map(([code, meaning]) => item(code, meaning, 4))],
      ),
    );
    command.action(() => {
      const [word = 'market'] = command.processedArgs as readonly (string | undefined)[];
      const fields = argument === undefined ? {} : { [argument.name()]: word };
      onCommand({ command: name, ...fields, options: command.opts() } as ParsedCommand);
    });
  }
  return program.addHelpText('after', () =>
    sections(environment, ['Begin with', ['  # a live feed, without an account\n  rx-trade-feed demo']]),
  );
};

// By the name of the package: the path from the built file differs from that of the source.
const version = (): string =>
  (createRequire(import.meta.url)('rx-trade-feed/package.json') as { version: string }).version;

const helpWidth = 80;

type Section = readonly [title: string, lines: readonly string[]];

const sections = (...all: readonly Section[]): string =>
  all.map(([title, lines]) => `\n${title}:\n${lines.join('\n')}`).join('\n');

const item = (term: string, description: string, width: number): string => {
  const help = new Command().createHelp();
  return help.formatItem(term, width, description, help);
};

const environment: Section = [
  'Environment',
  [
    item('TRADE_FEED_BASE_URL', 'the address of the service', 20),
    item('TRADE_FEED_API_KEY', 'the API key; a command-line argument is not accepted', 20),
    item('TRADE_FEED_CLUSTER', 'the address of the engine of a cluster', 20),
    item('HTTPS_PROXY', 'the HTTP proxy, such as http://proxy.example:3128', 20),
    item('NO_PROXY', 'hosts that are connected directly: example.com,10.0.0.1', 20),
    item('NODE_USE_ENV_PROXY', '0: HTTPS_PROXY has no effect', 20),
    item('NO_COLOR', 'no colours', 20),
  ],
];
