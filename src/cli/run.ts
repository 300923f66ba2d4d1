import { inspect } from 'node:util';
import { noop } from 'rxjs';
import { RecordingError, TradeFeedError } from '../index.js';
import { printable } from '../protocol/printable.js';
import type { ParsedCommand } from './arguments/parsed-command.js';
import { isCommand } from './arguments/commands.js';
import { parse } from './arguments/parse.js';
import { CliError, exitCodeOf } from './cli-error.js';
import type { CliContext } from './context.js';
import { ExitCode } from './exit-code.js';
import { failureWords } from './view/failure-words.js';

/**
 * Runs the command in the arguments.
 *
 * @param args - without the name of the program
 * @returns the exit code; an error is printed on stderr
 */
export const run = async (args: readonly string[], context: CliContext): Promise<number> => {
  // Without a listener, the `error` event of an output whose reader has exited would crash the process. `endings$` handles the error of stdout.
  for (const output of [context.stdout, context.stderr]) output.on('error', noop);
  try {
    return await start(parse(args), context);
  } catch (error) {
    context.stderr.write(`rx-trade-feed: ${wordsOf(error)}\n${hintFor(error, args)}`);
    return exitCodeOf(error);
  }
};

// Each command is loaded when it runs, so `listen` does not load the local service.
const start = async (command: ParsedCommand, context: CliContext): Promise<number> => {
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
    case 'cluster':
      return (await import('./commands/cluster.js')).cluster(command, context);
    case 'doctor':
      return (await import('./commands/doctor.js')).doctor(command, context);
    case 'top':
      return (await import('./commands/top.js')).top(command, context);
    case 'print':
      context.stdout.write(command.text);
      return ExitCode.ok;
  }
};

const wordsOf = (error: unknown): string => {
  if (error instanceof TradeFeedError) return failureWords(error);
  if (error instanceof CliError) return error.message;
  if (error instanceof RecordingError) return printable(error.message);
  return `an unexpected error occurred; this is a bug.\n${inspect(error)}`;
};

const hintFor = (error: unknown, [first]: readonly string[]): string => {
  if (exitCodeOf(error) !== ExitCode.usage) return '';
  const topic = isCommand(first) ? ` ${first}` : '';
  return `Try rx-trade-feed${topic} --help.\n`;
};
