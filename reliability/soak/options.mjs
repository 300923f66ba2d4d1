// The command line of the soak.
import { parseArgs } from 'node:util';
import { leakNames } from './leak.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    // For a short run, instead of minutes.
    seconds: { type: 'string' },
    // Frames a second. Without it: as many as the client processes.
    rate: { type: 'string' },
    'reconnect-every': { type: 'string', default: '5' },
    // The length of a window in ms. A sample is taken after each window.
    window: { type: 'string', default: '1000' },
    // Leaves out memory, which depends on how busy the machine is.
    exact: { type: 'boolean', default: false },
    // Leaks on purpose, to show that the soak detects it: heap, handle, fd.
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
if (unknown.length > 0)
  throw new RangeError(`Unknown leak: ${unknown.join(', ')}. The leaks are ${leakNames.join(', ')}.`);

/** How long the service is down in each fault that stops it. */
export const outageMs = Math.min(800, everyS * 200);
/** Whether the run becomes a result of docs/reliability/load.md: not a short run, and not a run with a leak. */
export const isResult = seconds >= 60 && !isExact && leaks.length === 0;

export const command = `npm run reliability -- soak ${process.argv.slice(2).join(' ') || `--minutes ${values.minutes}`}`;
