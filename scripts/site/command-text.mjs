// The generated parts of the page about the command line, from the commands of the library.
import { table } from '../../bench/lib/table.mjs';
import { withPart } from './failure-text.mjs';

/** Marks flags, with their values, and environment variables as code. */
const withCode = (text) =>
  text.replaceAll(/(?<![\w-])(--[a-z][a-z-]*(?: (?:\d+[a-z]?|max)\b)?|[A-Z]+(?:_[A-Z]+)+)/g, '`$1`');

/** Marks the actions of a command, such as `status`, as code. */
const withActions = (text, argument) => {
  if (argument?.name() !== 'action') return text;
  const actions = argument.description
    .replaceAll(/ or |[A-Z]+|,/g, ' ')
    .trim()
    .split(/ +/);
  return text.replaceAll(new RegExp(`(?<![\\w-])(${actions.join('|')})(?![\\w-])`, 'g'), '`$1`');
};

/** A bar ends a cell, also in code. */
const cell = (text) => text.replaceAll('|', '\\|');

const usageOf = (name, { argument, usage }) => {
  if (usage) return `rx-trade-feed ${name} ${usage}`;
  const [open, close] = argument?.required ? ['<', '>'] : ['[', ']'];
  const argumentText = argument && `${open}${argument.name()}${argument.variadic ? '...' : ''}${close}`;
  return ['rx-trade-feed', name, '[options]', argumentText].filter(Boolean).join(' ');
};

const optionList = ({ argument, options }) =>
  [
    ...(argument ? [[argument.name(), argument.description]] : []),
    ...Object.values(options).map(({ flags, description }) => [flags, description]),
  ]
    .map(([name, description]) => `- \`${name}\`: ${withCode(description)}`)
    .join('\n');

const exampleLines = ({ examples }) =>
  examples.map(([line, effect]) => `# ${effect}\n${line.replaceAll(/\brx-trade-feed\b/g, 'npx rx-trade-feed')}`);

/** Returns the generated part of a command: what it does, its options and its examples. */
const commandText = (name, spec) =>
  [
    `\`${usageOf(name, spec)}\``,
    ...spec.description.map((text) => withActions(withCode(text), spec.argument)),
    optionList(spec),
    ['```bash', exampleLines(spec).join('\n\n'), '```'].join('\n'),
  ].join('\n\n');

/** Returns the table of all exit codes: one row for each meaning, with the commands that use it. */
const exitCodeText = (commands, exitCodes) =>
  table(
    ['exit code', 'commands', 'meaning'],
    exitCodes.map(([code, names, meaning]) => [
      String(code),
      names.length === Object.keys(commands).length ? 'all' : names.map((name) => `\`${name}\``).join(', '),
      withCode(cell(meaning)),
    ]),
  );

/** Returns the page of the command line with its generated parts. */
export const commandLinePage = (text, commands, exitCodes) =>
  Object.entries(commands).reduce(
    (page, [name, spec]) => withPart(page, `command ${name}`, commandText(name, spec)),
    withPart(text, 'exit codes', exitCodeText(commands, exitCodes)),
  );
