// The command line of the soak, and what it leaks on purpose.
import { openSync } from 'node:fs';
import { readOptions } from '../lib/options.mjs';

const held = [];
const twice = (create) => [create(), create()];
const leaks = {
  // Numbers need much memory, and the garbage collector doesn't scan them.
  heap: () => held.push(Array.from({ length: 50_000 }, (_, n) => n + 0.5)),
  handle: () => held.push(...twice(() => setInterval(() => {}, 2 ** 30))),
  fd: () => held.push(...twice(() => openSync('/dev/null'))),
};

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
export const leaking = options.leak?.split(',') ?? [];
const unknown = leaking.filter((name) => !Object.hasOwn(leaks, name));
if (unknown.length > 0)
  throw new RangeError(`Unknown leak: ${unknown.join(', ')}. The leaks are ${Object.keys(leaks).join(', ')}.`);

/** Leaks one unit of each named resource with each call. */
export const leak = () => leaking.forEach((name) => leaks[name]());

/** How long the service is down in each fault that stops it. */
export const outageMs = Math.min(800, everyS * 200);
/** Whether the run becomes a result: not a short run, and not a run with a leak. */
export const isResult = seconds >= 60 && !isExact && leaking.length === 0;

export const command = `npm run reliability -- soak ${process.argv.slice(2).join(' ') || `--minutes ${options.minutes}`}`;
