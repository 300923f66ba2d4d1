import type { Failure } from './failure';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' });

/** Says how many: `1,842`. */
export const count = (number: number): string => whole.format(number);

/** Says how many of what: `1 frame`, `3 frames`. */
export const counted = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? '' : 's'}`;

/** Says a rate, with a digit more while it is small: `4.5`, `5,012`. */
export const rate = (number: number): string => (number > 0 && number < 100 ? oneDigit : whole).format(number);

const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** Splits an amount of bytes into a figure and its unit: `['7.4', 'MB']`. */
export const bytesParts = (bytes: number): readonly [figure: string, unit: string] => {
  const power = Math.min(units.length - 1, bytes < 1_000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const figure = bytes / 1_000 ** power;
  return [(power === 0 || figure >= 100 ? whole : oneDigit).format(figure), units[power] ?? 'B'];
};

/** Says an amount of bytes: `7.4 MB`. */
export const bytes = (amount: number): string => bytesParts(amount).join('\u00a0');

/** Says how long, in ms: `40 ms`, `3.2 s`, `4 min 12 s`, `2 h 5 min`. */
export const duration = (ms: number): string => {
  if (ms < 999.5) return `${whole.format(ms)} ms`;
  if (ms < 59_950) return `${oneDigit.format(ms / 1_000)} s`;
  return longer(Math.round(ms / 1_000));
};

/** Says how long in whole seconds, for what is counted up or down while one looks: `3 s`, `4 min 12 s`. */
export const seconds = (ms: number): string => {
  const total = Math.max(0, Math.floor(ms / 1_000));
  return total < 60 ? `${total} s` : longer(total);
};

const longer = (total: number): string => {
  const [hours, minutes] = [Math.floor(total / 3_600), Math.floor(total / 60) % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)} days ${hours % 24} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${total % 60} s`;
};

/** Says when: `14:03:11`. */
export const time = (at: number): string => clock.format(at);

/** Says when, to the millisecond: `14:03:11.042`. */
export const timeMs = (at: number): string => `${clock.format(at)}.${String(Math.floor(at) % 1_000).padStart(3, '0')}`;

/** Says when, with the day if it is another one: `14:03:11`, `Fri 20 Nov, 14:03:11`. */
export const moment = (at: number, now: number): string =>
  day.format(at) === day.format(now) ? time(at) : `${day.format(at)}, ${time(at)}`;

/** What the library says to a developer, where somebody who watches the page would ask what is meant. */
const wordsHere: readonly (readonly [there: string, here: string])[] = [
  [
    "Do less in each `next`, or set `receiveIn: 'worker'`: a blocked event loop reads nothing.",
    'Give the relay less to do, or more of the processor.',
  ],
  ['This process did not read', 'The relay did not read'],
  ['share one feed in this process', 'let it read from this relay'],
  ['the name in `baseUrl`', 'the address of the service'],
  ['between this process and the service', 'between the relay and the service'],
  ['this library sends none', 'the relay sends none'],
  [' in the option `apiKey` or in TRADE_FEED_API_KEY', ' to the relay'],
];

const inWordsHere = (text: string): string =>
  wordsHere.reduce((said, [there, here]) => said.replace(there, here), text);

/** Says what happened, without what to do about it. */
export const whatHappened = ({ message, advice }: Failure): string =>
  inWordsHere((message.endsWith(advice) ? message.slice(0, -advice.length) : message).trim());

/** Says what to do about it. */
export const whatToDo = ({ advice }: Failure): string => inWordsHere(advice);

/** The same in a headline: without what stands in brackets. */
export const headline = (failure: Failure): string => whatHappened(failure).replace(/ ?\([^)]*\)(?=\.?$)/, '');

/** Says what was observed: `4001 connection replaced`, `HTTP 503`; `undefined` when there was neither a code nor a status. */
export const observed = ({ closeCode, code, status }: Failure): string | undefined => {
  // The reason that the service gave stays on the server; the code says the same.
  if (closeCode !== undefined) return `${closeCode} ${code.replaceAll('-', ' ')}`;
  return status === undefined ? undefined : `HTTP ${status}`;
};
