// The generated parts of the page about the command line, from the commands of the library.
import { table } from '../../bench/lib/table.mjs';
import { withPart } from './failure-text.mjs';

/** Marks flags, with their values, and environment variables as code. */
const withCode = (text) =>
  text.replaceAll(/(?<![\w-])(--[a-z][a-z-]*(?: (?:\d+[a-z]?|max)\b)?|[A-Z]+(?:_[A-Z]+)+)/g, '`$1`');

const keyOf = ({ flags, description }) => `${flags}: ${description}`;

/** Returns the options that several commands have, with the names of these commands. */
const sharedOptions = (commands) => {
  const uses = new Map();
  for (const [name, { options }] of Object.entries(commands))
    for (const option of Object.values(options)) {
      const { names = [] } = uses.get(keyOf(option)) ?? {};
      uses.set(keyOf(option), { option, names: [...names, name] });
    }
  return new Map([...uses].filter(([, { names }]) => names.length > 1));
};

const usageOf = (name, { argument, usage }) => {
  if (usage) return `rx-trade-feed ${name} ${usage}`;
  const [open, close] = argument?.required ? ['<', '>'] : ['[', ']'];
  return ['rx-trade-feed', name, '[options]', argument && open + argument.name() + close].filter(Boolean).join(' ');
};

const optionLines = (options) =>
  options.map(({ flags, description }) => `- \`${flags}\`: ${withCode(description)}`).join('\n');

/** Returns the section of a command: what it does, and the options that no other command has. */
const commandText = (name, spec, shared) => {
  const own = Object.values(spec.options).filter((option) => !shared.has(keyOf(option)));
  return [`### ${name}`, `\`${usageOf(name, spec)}\``, ...spec.description.map(withCode), optionLines(own)]
    .filter(Boolean)
    .join('\n\n');
};

/** Returns the shared options, for each list of commands that have them. */
const sharedText = (shared) => {
  const groups = new Map();
  for (const { option, names } of shared.values()) {
    const commands = names.map((name) => `\`${name}\``).join(', ');
    groups.set(commands, [...(groups.get(commands) ?? []), option]);
  }
  return [...groups].map(([commands, options]) => `${commands}:\n\n${optionLines(options)}`).join('\n\n');
};

/** Returns the page of the command line with its generated parts. */
export const commandLinePage = (text, commands, exitCodes) => {
  const shared = sharedOptions(commands);
  const parts = {
    'shared options': sharedText(shared),
    commands: Object.entries(commands)
      .map(([name, spec]) => commandText(name, spec, shared))
      .join('\n\n'),
    'exit codes': table(
      ['code', 'meaning'],
      exitCodes.map(([code, meaning]) => [String(code), withCode(meaning)]),
    ),
  };
  return Object.entries(parts).reduce((page, [mark, part]) => withPart(page, mark, part), text);
};
