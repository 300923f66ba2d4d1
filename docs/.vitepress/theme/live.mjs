// The runs of the live diagrams: real operators in virtual time, with the values of the sliders.
import { TradeFeedError } from 'rx-trade-feed/browser';
import { slidingWindow } from 'rx-trade-feed/operators';
import { concat, defer, EMPTY, of, retryWhen, throwError } from 'rxjs';
import { seeded } from '../../../reliability/lib/random.mjs';
import { backoff } from '../../../src/feed/backoff.ts';
import { runDiagram, unitMs } from '../../../scripts/site/diagrams/run.mjs';

const endMs = 5_000;
const letters = 'abcdefghijklmnopqrstuvwxyz';

/** Returns a line with a frame every 300 ms, and one outage. */
const lineOf = (outageAtMs, outageMs) => {
  const from = outageAtMs / unitMs;
  const to = from + outageMs / unitMs;
  let frames = 0;
  const slots = Array.from({ length: endMs / unitMs }, (_, slot) => {
    if (slot === 0 || (slot === to && outageMs > 0)) return 'O';
    if (slot === from && outageMs > 0) return 'X';
    if (slot % 3 !== 1 || (slot > from && slot < to)) return '-';
    frames += 1;
    return letters[frames - 1];
  });
  return slots.join('');
};

const showWindow = ({ start, end, count, complete }, level) => ({
  label: `${count}${complete ? '' : '+'}`,
  kind: 'window',
  span: { from: start, to: end, level, isComplete: complete },
});

/** Runs windows over an outage. All values are multiples of 100 ms. */
export const windowRun = ({ lengthMs, everyMs, outageAtMs, outageMs }) => {
  const every = Math.min(everyMs, lengthMs);
  const overlapping = Math.ceil(lengthMs / every);
  const pipeline = {
    name: `slidingWindow({ lengthMs: ${lengthMs}, everyMs: ${every} })`,
    apply: slidingWindow({ lengthMs, everyMs: every }),
    show: (window) => showWindow(window, Math.abs(Math.round(window.start / every)) % Math.min(overlapping, 4)),
  };
  const run = runDiagram({ source: lineOf(outageAtMs, outageMs), pipelines: [pipeline], endMs: endMs + unitMs });
  return { title: 'Frames in each window; + if an outage overlaps it', ...run };
};

const refused = { code: 'capacity-full', verdict: 'backoff', stage: 'handshake', summary: 'No room.', endedAt: 0 };

/** Runs clients whose first attempts fail. Each has other random numbers. */
export const backoffRun = ({ initialDelayMs, factor, maxDelayMs, jitter, failures, clients }) => {
  const pipelines = Array.from({ length: clients }, (_, client) => ({
    name: `client ${client + 1}`,
    apply: () => {
      let attempts = 0;
      const attempt$ = defer(() => {
        attempts += 1;
        const isLast = attempts > failures;
        const next$ = isLast ? EMPTY : throwError(() => new TradeFeedError(refused));
        return concat(of(isLast ? 'opened' : 'failed'), next$);
      });
      const random = seeded(client + 1);
      return attempt$.pipe(retryWhen(backoff({ initialDelayMs, factor, maxDelayMs, jitter, random })));
    },
    show: (label) => ({ label, kind: label === 'opened' ? 'value' : 'event' }),
  }));
  const longest = Array.from({ length: failures }, (_, n) => Math.min(maxDelayMs, initialDelayMs * factor ** n));
  const end = Math.max(1_000, Math.ceil((longest.reduce((sum, each) => sum + each, 0) + 200) / 500) * 500);
  const run = runDiagram({ source: '', pipelines, endMs: end });
  const title = `backoff({ initialDelayMs: ${initialDelayMs}, factor: ${factor}, maxDelayMs: ${maxDelayMs}, jitter: '${jitter}' })`;
  return { title, ...run };
};
