import type { Failure } from './failure';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' });

/** Formats a number: `1,842`. */
export const count = (number: number): string => whole.format(number);

/** Formats a number with a noun: `1 frame`, `3 frames`. */
export const counted = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? '' : 's'}`;

/** Formats a rate, with one decimal below 100: `4.5`, `5,012`. */
export const rate = (number: number): string => (number > 0 && number < 100 ? oneDigit : whole).format(number);

const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** Formats an amount of bytes as a figure and its unit: `['7.4', 'MB']`. */
export const bytesParts = (bytes: number): readonly [figure: string, unit: string] => {
  const power = Math.min(units.length - 1, bytes < 1_000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const figure = bytes / 1_000 ** power;
  return [(power === 0 || figure >= 100 ? whole : oneDigit).format(figure), units[power] ?? 'B'];
};

/** Formats an amount of bytes: `7.4 MB`. */
export const bytes = (amount: number): string => bytesParts(amount).join('\u00a0');

/** Formats a duration in ms: `40 ms`, `3.2 s`, `4 min 12 s`, `2 h 5 min`. */
export const duration = (ms: number): string => {
  if (ms < 999.5) return `${whole.format(ms)} ms`;
  if (ms < 59_950) return `${oneDigit.format(ms / 1_000)} s`;
  return longer(Math.round(ms / 1_000));
};

/** Formats a duration in ms as whole seconds, for counters: `3 s`, `4 min 12 s`. */
export const seconds = (ms: number): string => {
  const total = Math.max(0, Math.floor(ms / 1_000));
  return total < 60 ? `${total} s` : longer(total);
};

const longer = (total: number): string => {
  const [hours, minutes] = [Math.floor(total / 3_600), Math.floor(total / 60) % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)} days ${hours % 24} h`;
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${total % 60} s`;
};

/** Formats a time: `14:03:11`. */
export const time = (at: number): string => clock.format(at);

/** Formats a time with milliseconds: `14:03:11.042`. */
export const timeMs = (at: number): string => `${clock.format(at)}.${String(Math.floor(at) % 1_000).padStart(3, '0')}`;

/** Formats a time, with the day if it isn't today: `14:03:11`, `Fri 20 Nov, 14:03:11`. */
export const moment = (at: number, now: number): string =>
  day.format(at) === day.format(now) ? time(at) : `${day.format(at)}, ${time(at)}`;

/** Replaces texts that the library writes for developers with texts for viewers of the page. */
const replacements: readonly (readonly [ofLibrary: string, ofPage: string])[] = [
  [
    "Do less in each `next`, or set `receiveIn: 'worker'`: a blocked event loop reads nothing.",
    'Reduce the work of the relay, or give it more processor time.',
  ],
  ["This process didn't read", "The relay didn't read"],
  ['share one feed in this process', 'let it read from this relay'],
  ['the host in `baseUrl`', 'the address of the service'],
  ['between this process and the service', 'between the relay and the service'],
  ['this library never sends one', 'the relay never sends one'],
  ['the option `apiKey` or TRADE_FEED_API_KEY', 'the API key of the relay'],
];

const forViewers = (text: string): string =>
  replacements.reduce((result, [ofLibrary, ofPage]) => result.replace(ofLibrary, ofPage), text);

/** Returns what happened, without the advice and the page that follows it. */
export const whatHappened = ({ message, advice }: Failure): string => {
  const end = message.lastIndexOf(advice);
  return forViewers((end < 0 ? message : message.slice(0, end)).trim());
};

/** Returns the advice. */
export const whatToDo = ({ advice }: Failure): string => forViewers(advice);

/** Returns what happened as a headline, without the part in brackets. */
export const headline = (failure: Failure): string => whatHappened(failure).replace(/ ?\([^)]*\)(?=\.?$)/, '');

/** Returns the close code or the status: `4001 connection replaced`, `HTTP 503`; `undefined` without both. */
export const observed = ({ closeCode, code, status }: Failure): string | undefined => {
  // The close reason stays on the server. The code has the same meaning.
  if (closeCode !== undefined) return `${closeCode} ${code.replaceAll('-', ' ')}`;
  return status === undefined ? undefined : `HTTP ${status}`;
};
