// What the soak can be told.
import { parseArgs } from 'node:util';
import { leakNames } from './leak.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    // For a short look, in place of minutes.
    seconds: { type: 'string' },
    // Frames a second; without it as fast as the client takes them.
    rate: { type: 'string' },
    'reconnect-every': { type: 'string', default: '5' },
    // The length of a window in ms; a sample is taken behind each.
    window: { type: 'string', default: '1000' },
    // Without what depends on how busy the machine is: the memory.
    exact: { type: 'boolean', default: false },
    // To show that it can fail: heap, handle, fd.
    leak: { type: 'string' },
  },
});

const positive = (name, text) => {
  const number = Number(text);
  if (!(number > 0)) throw new RangeError(`--${name} must be a number above 0, not ${text}.`);
  return number;
};

export const seconds =
  values.seconds === undefined ? positive('minutes', values.minutes) * 60 : positive('seconds', values.seconds);
export const rate = values.rate === undefined ? undefined : positive('rate', values.rate);
export const everyS = positive('reconnect-every', values['reconnect-every']);
export const windowMs = positive('window', values.window);
export const isExact = values.exact;
export const leaks = values.leak?.split(',') ?? [];
const unknown = leaks.filter((name) => !leakNames.includes(name));
if (unknown.length > 0) throw new RangeError(`There is no leak called ${unknown.join(', ')}.`);

/** How long the service is away in each trouble that takes it away. */
export const outageMs = Math.min(800, everyS * 200);
/** Shorter runs are looks, which nobody keeps; nor is a run with a leak. */
export const isKept = seconds >= 60 && !isExact && leaks.length === 0;

export const command = `npm run soak -- ${process.argv.slice(2).join(' ') || `--minutes ${values.minutes}`}`;
