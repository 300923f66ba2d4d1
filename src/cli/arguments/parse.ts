import { type Command, CommanderError } from 'commander';
import { usageError } from '../cli-error.js';
import { type CommandName, commandNames, isCommand, quoted } from './commands.js';
import type { ParsedCommand } from './parsed-command.js';
import { createProgram } from './program.js';

/**
 * Parses the arguments. An error names the problem but never repeats a value, which may be a key in the wrong place.
 *
 * @param args - without the name of the program
 * @throws CliError with the exit code for wrong usage
 */
export const parse = (args: readonly string[]): ParsedCommand => {
  const [first, topic] = args;
  if (first === 'help')
    return topic === undefined ? parse(['--help']) : parse(isCommand(topic) ? [topic, '--help'] : [topic]);
  if (first === undefined) throw usageError(`A command is missing. ${listOfCommands}`);
  let parsed: ParsedCommand | undefined;
  let printed = '';
  const program = createProgram(
    (command) => (parsed = command),
    (text) => (printed += text),
  );
  const command = program.commands.find((each) => each.name() === first);
  try {
    if (command === undefined && !first.startsWith('-')) program.parse([first], { from: 'user' });
    else program.parse(checkFlags(command ?? program, args), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw explain(error, command ?? program);
  }
  return parsed ?? { command: 'print', text: printed };
};

/** Returns the text of `--help`: of one command, or of the program. */
export const helpText = (topic?: CommandName): string => {
  const parsed = parse(topic === undefined ? ['--help'] : [topic, '--help']);
  return parsed.command === 'print' ? parsed.text : '';
};

const listOfCommands = `The commands are ${commandNames.join(', ')}.`;

/**
 * Checks the flags before commander does. Commander would use `--json` as the value in `--key-file --json`, and would look for an option with
 * the name `--cuont=5`. A negative number is a value: its option explains what is allowed.
 */
const checkFlags = ({ options }: Command, args: readonly string[]): string[] =>
  args.map((arg, index) => {
    const [flag = ''] = arg.split('=', 1);
    const option = options.find(({ short, long }) => flag === short || flag === long);
    if (option === undefined) return arg.startsWith('--') ? flag : arg;
    const [name, hasValue, next = '-'] = [option.long ?? flag, flag !== arg, args[index + 1]];
    if (hasValue && !option.required) throw usageError(`${name} takes no value.`);
    if (option.required && !hasValue && (args[index + 1] === undefined || /^-[^\d.]/.test(next)))
      throw usageError(`${name} needs a value: ${option.flags.replace(/.*<(.*)>/, '$1')}.`);
    return arg;
  });

const explain = ({ code, message }: CommanderError, command: Command): Error => {
  const [, word = '', meant] = /'(.*?)'(?:\s+\(Did you mean (.*)\?\))?$/.exec(message) ?? [];
  const suggestion = meant === undefined ? '' : ` Did you mean ${meant}?`;
  const usage = `Usage: ${[command.parent?.name(), command.name(), command.usage()].filter(Boolean).join(' ')}`;
  switch (code) {
    case 'commander.unknownOption':
      return isKeyOption(word) ? keyInArguments() : usageError(`There is no option${quoted(word)}.${suggestion}`);
    case 'commander.unknownCommand':
      return usageError(`There is no command${quoted(word)}.${suggestion || ` ${listOfCommands}`}`);
    case 'commander.excessArguments':
      return usageError(`There are too many arguments. ${usage}`);
    case 'commander.missingArgument':
      return usageError(`The ${word} is missing. ${usage}`);
    default:
      return usageError(`The arguments are not valid. ${usage}`);
  }
};

const isKeyOption = (flag: string): boolean => /^-+(x-)?(api-?)?(key|token)$/i.test(flag);

const keyInArguments = (): Error =>
  usageError(
    'The API key is not accepted as an argument, because the history of the shell and the list of processes would show it. ' +
      'Set TRADE_FEED_API_KEY, or write the key to a file and use --key-file FILE.',
  );
