// The command line of the soak.
import { readOptions } from '../lib/options.mjs';
import { leakNames } from './leak.mjs';

const defaults = {
  minutes: 2,
  // For a short run, instead of minutes.
  seconds: undefined,
  // Frames a second. Without it: as many as the client processes.
  rate: undefined,
  'reconnect-every': 5,
  // The length of a window in ms. A sample is taken after each window.
  window: 1_000,
  // Leaves out memory, which depends on how busy the machine is.
  exact: false,
  // Leaks on purpose, to show that the soak detects it: heap, handle, fd.
  leak: undefined,
};
const options = readOptions(defaults, { positive: ['minutes', 'seconds', 'rate', 'reconnect-every', 'window'] });
export const { rate, 'reconnect-every': everyS, window: windowMs, exact: isExact } = options;
export const { seconds = options.minutes * 60 } = options;
export const leaks = options.leak?.split(',') ?? [];
const unknown = leaks.filter((name) => !leakNames.includes(name));
if (unknown.length > 0)
  throw new RangeError(`Unknown leak: ${unknown.join(', ')}. The leaks are ${leakNames.join(', ')}.`);

/** How long the service is down in each fault that stops it. */
export const outageMs = Math.min(800, everyS * 200);
/** Whether the run becomes a result of docs/reliability/load.md: not a short run, and not a run with a leak. */
export const isResult = seconds >= 60 && !isExact && leaks.length === 0;

export const command = `npm run reliability -- soak ${process.argv.slice(2).join(' ') || `--minutes ${options.minutes}`}`;
