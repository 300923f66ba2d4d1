import {
  exitCodeMeanings,
  recordExitCodeMeanings,
  replayExitCodeMeanings,
  serveExitCodeMeanings,
} from '../exit-code.js';
import { type CommandName, type CommandSpec, commands } from './commands.js';

/** Makes the text of `--help`: of one command, or of all. */
export const helpText = (topic?: CommandName): string =>
  `${(topic === undefined ? overview() : details(topic)).join('\n\n')}\n`;

const columns = 80;
const indent = '  ';

const overview = (): string[] => [
  'rx-trade-feed: the Real-time Trade Feed Service on the command line',
  'Usage: rx-trade-feed COMMAND [options]',
  section(
    'Commands',
    Object.entries(commands).map(([name, { takes, summary }]) => row(`${name}${words[takes]}`, summary)),
  ),
  section('Options', [
    row('COMMAND --help', 'options, examples and exit codes of a command'),
    row('--version', 'the version'),
  ]),
  environment,
  section('Begin with', [example(['rx-trade-feed demo', 'a live feed, without an account'])]),
];

const details = (name: CommandName): string[] => {
  const { takes, about, options, examples }: CommandSpec = commands[name];
  return [
    `Usage: rx-trade-feed ${name}${words[takes]} [options]`,
    ...about.map((paragraph) => wrapped(paragraph, columns).join('\n')),
    section(
      'Options',
      Object.entries(options).map(([option, { short, value, help }]) =>
        row(`${short ? `-${short}, ` : '    '}--${option}${value ? ` ${value}` : ''}`, help, 30),
      ),
    ),
    section('Examples', examples.map(example)),
    ...(takes === 'feed' ? [environment] : []),
    section(
      'Exit codes',
      Object.entries(codes[name]).map(([code, meaning]) => row(code, meaning, 6)),
    ),
  ];
};

const words = { feed: ' [market|raw]', file: ' FILE', nothing: '' };

const codes = {
  demo: exitCodeMeanings,
  listen: exitCodeMeanings,
  record: recordExitCodeMeanings,
  replay: replayExitCodeMeanings,
  serve: serveExitCodeMeanings,
};

const section = (title: string, lines: readonly string[]): string => [title, ...lines].join('\n');

const example = ([line, does]: readonly [line: string, does: string]): string => `${indent}# ${does}\n${indent}${line}`;

const row = (name: string, does: string, nameWidth = 22): string =>
  wrapped(does, columns - nameWidth - indent.length)
    .map((line, index) => indent + (index === 0 ? name : '').padEnd(nameWidth) + line)
    .join('\n');

const wrapped = (text: string, width: number): string[] =>
  text.split(' ').reduce<string[]>((lines, word) => {
    const last = lines.at(-1);
    return last !== undefined && last.length + 1 + word.length <= width
      ? [...lines.slice(0, -1), `${last} ${word}`]
      : [...lines, word];
  }, []);

const environment = section('Environment', [
  row('TRADE_FEED_BASE_URL', 'the address of the service'),
  row('TRADE_FEED_API_KEY', 'the API key; it is never taken from an argument'),
  row('NO_COLOR', 'no colours'),
]);
