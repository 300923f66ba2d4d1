import { inspect } from 'node:util';
import { noop } from 'rxjs';
import { RecordingError, TradeFeedError } from '../index.js';
import { isCommand } from './arguments/commands.js';
import { helpText } from './arguments/help.js';
import { type Command, parse } from './arguments/parse.js';
import { version } from './arguments/version.js';
import { CliError, exitCodeOf } from './cli-error.js';
import type { CliContext } from './context.js';
import { ExitCode } from './exit-code.js';
import { failureWords } from './view/failure-words.js';
import { printable } from '../protocol/printable.js';

/**
 * Runs the command that the arguments ask for.
 *
 * @param args - without the program's own name
 * @returns the exit code; what failed is told on stderr, in plain words
 */
export const run = async (args: readonly string[], context: CliContext): Promise<number> => {
  // A reader that is gone is met where it matters; without a listener it would be a crash.
  for (const output of [context.stdout, context.stderr]) output.on('error', noop);
  try {
    return await start(parse(args), context);
  } catch (error) {
    context.stderr.write(`rx-trade-feed: ${wordsOf(error)}\n${hintFor(error, args)}`);
    return exitCodeOf(error);
  }
};

// A command loads what it needs, when it is called: `listen` has no use for the local service.
const start = async (command: Command, context: CliContext): Promise<number> => {
  switch (command.command) {
    case 'demo':
      return (await import('./commands/demo.js')).demo(command, context);
    case 'listen':
      return (await import('./commands/listen.js')).listen(command, context);
    case 'record':
      return (await import('./commands/record.js')).record(command, context);
    case 'replay':
      return (await import('./commands/replay.js')).replay(command, context);
    case 'serve':
      return (await import('./commands/serve.js')).serve(command, context);
    case 'help':
      context.stdout.write(helpText(command.topic));
      return ExitCode.ok;
    case 'version':
      context.stdout.write(`${version()}\n`);
      return ExitCode.ok;
  }
};

const wordsOf = (error: unknown): string => {
  if (error instanceof TradeFeedError) return failureWords(error);
  if (error instanceof CliError) return error.message;
  if (error instanceof RecordingError) return printable(error.message);
  return `something unexpected happened; this is a bug.\n${inspect(error)}`;
};

const hintFor = (error: unknown, [first]: readonly string[]): string => {
  if (exitCodeOf(error) !== ExitCode.usage) return '';
  const topic = isCommand(first) ? ` ${first}` : '';
  return `Try rx-trade-feed${topic} --help.\n`;
};
