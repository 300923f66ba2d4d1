// The diagrams of the operators. Each is a real run in virtual time.
import {
  backoff,
  connectionStatus,
  conflate,
  countWindow,
  createTradeFeedError,
  decodeEither,
  decodeWith,
  distinctRecent,
  feedStats,
  filterValues,
  frames,
  gaps,
  mapValues,
  mergeMapBounded,
  shareFeed,
  slidingWindow,
  toAsyncIterable,
  toReadable,
  tumblingWindow,
  whereBytes,
  whereField,
} from 'rx-trade-feed';
import { untilAborted } from 'rx-trade-feed/interop';
import { concat, defer, ignoreElements, map, merge, NEVER, of, retryWhen, tap, throwError, timer } from 'rxjs';
import { outcomeDiagrams } from './outcomes.mjs';
import { messagesOf, runDiagram, unitMs } from './run.mjs';
import { runLoop, runOf } from './run-in-turns.mjs';

const words = { 'ticket-requested': 'ticket', disconnected: 'lost', reconnecting: 'waiting', gap: 'gap' };

/** How a frame or an event is drawn. */
const showItem = (value) => {
  if (value.type === 'gap') return { label: 'gap', kind: 'gap' };
  return value.type === 'frame'
    ? { label: value.text(), kind: 'frame' }
    : { label: words[value.type] ?? value.type, kind: 'event' };
};

const showWindow = ({ type, start, end, frames: inside, count, complete }, level = 0) => {
  if (type !== 'window') return { label: type, kind: 'event' };
  const names = inside.map((frame) => frame.text()).join(' ') || (count === 0 ? 'empty' : count);
  return {
    label: complete ? names : `${names}, incomplete`,
    kind: 'window',
    span: { from: start, to: end, level, isComplete: complete },
  };
};

/** A frame by its field `to`. */
const showTo = (value) => (value.type === 'frame' ? { label: value.json().to, kind: 'frame' } : showItem(value));

const outageLine = '(TO)a-b-X--R--(TO)c-d|';
const slowLine = '--a-b-c-d-------|';

/** A row with the messages of a source. */
const sourceRow = (line) => ({ name: 'source', messages: messagesOf(line) });

/** Runs a loop with work of 500 ms over what an operator returns. */
const slowly = async (name, iterableOf) => {
  const messages = await runLoop({ source: slowLine, iterableOf, workMs: 5 * unitMs, show: showItem });
  return runOf([sourceRow(slowLine), { name: `${name}, with 500 ms of work`, messages }]);
};

/** A row with what an operator emits. `operator` receives the scheduler. */
const row = (name, operator, show = showItem) => ({
  ...{ name, show },
  apply: (source$, scheduler) => source$.pipe(operator(scheduler)),
});

/** Each diagram by its name: a title, and what `runDiagram` runs, or a function `run` that returns the rows. */
export const diagrams = {
  'tumbling-window': {
    title: 'tumblingWindow: windows side by side, with the gaps in them',
    source: 'Oa--b------c-X----O-d-------',
    pipelines: [
      row(
        'tumblingWindow({ lengthMs: 1_000 })',
        (scheduler) => tumblingWindow({ lengthMs: 1_000, scheduler }),
        (window) => showWindow(window),
      ),
    ],
    endMs: 3_100,
  },
  'sliding-window': {
    title: 'slidingWindow: windows that overlap',
    source: 'Oa----b----c-----------',
    pipelines: [
      row(
        'slidingWindow({ lengthMs: 1_000, everyMs: 500 })',
        (scheduler) => slidingWindow({ lengthMs: 1_000, everyMs: 500, scheduler }),
        (window) => showWindow(window, Math.abs(window.start / 500) % 2),
      ),
    ],
    endMs: 2_200,
  },
  'count-window': {
    title: 'countWindow: windows of a number of frames',
    source: 'O-a--b--c--X----O--d---',
    pipelines: [
      row(
        'countWindow(2)',
        (scheduler) => countWindow(2, { scheduler }),
        (window) => showWindow(window),
      ),
    ],
  },
  conflate: {
    title: 'conflate: the newest value of each key, once a period',
    source: 'O-a-p-b----------c--q-------',
    pipelines: [
      row(
        'conflate(key, 1_000): a, b and c have one key; p and q another',
        (scheduler) => conflate((frame) => (frame.text() < 'm' ? 'first' : 'second'), 1_000, { scheduler }),
        (value) =>
          value.type === 'conflated'
            ? { label: `${value.value.text()}, of ${value.count}`, kind: 'value' }
            : showItem(value),
      ),
    ],
    endMs: 2_300,
  },
  'where-field': {
    title: 'whereField: a filter over one field of frames',
    source: 'O-a-b-X---O-a-c-|',
    payloads: { a: '{"to":"a"}', b: '{"to":"b","by":"a"}', c: '{"to":"c"}' },
    pipelines: [row(`whereField('to', ['a', 'c'])`, () => whereField('to', ['a', 'c']), showTo)],
  },
  'map-values': {
    title: 'mapValues and filterValues: other values, the same events',
    source: 'O-a-b-X---O-a-c-|',
    pipelines: [
      row(
        'mapValues((frame) => frame.text().toUpperCase())',
        () => mapValues((frame) => frame.text().toUpperCase()),
        (value) => (typeof value === 'string' ? { label: value, kind: 'value' } : showItem(value)),
      ),
      row("filterValues((frame) => frame.text() !== 'b')", () => filterValues((frame) => frame.text() !== 'b')),
    ],
  },
  'where-bytes': {
    title: 'whereBytes: a filter over the bytes of frames',
    source: 'O-a-b-X---O-a-c-|',
    payloads: { a: '{"to":"a"}', b: '{"to":"b"}', c: '{"to":"c"}' },
    pipelines: [row(`whereBytes('"a"')`, () => whereBytes('"a"'), showTo)],
  },
  'decode-with': {
    title: 'decodeWith and decodeEither: JSON that a schema checks',
    source: 'O-a--b--c-|',
    payloads: { a: '{"n":1}', b: '{"n":"x"}', c: '{"n":3}' },
    pipelines: [
      row(
        'decodeWith(schema)',
        () => decodeWith(numbers),
        (value) => (value.type === 'decoded' ? { label: `n = ${value.value.n}`, kind: 'value' } : showItem(value)),
      ),
      row(
        'decodeEither(schema)',
        () => decodeEither(numbers),
        (value) => {
          if (value._tag === 'Left') return { label: `left ${value.left.issues[0].path}`, kind: 'value' };
          return value._tag === 'Right'
            ? { label: `right n = ${value.right.value.n}`, kind: 'value' }
            : showItem(value);
        },
      ),
    ],
  },
  'distinct-recent': {
    title: 'distinctRecent: a frame that arrives twice',
    source: 'O-a-b-a-X-O-b---------a-|',
    pipelines: [
      row('distinctRecent((frame) => frame.text(), { ttlMs: 1_000 })', (scheduler) =>
        distinctRecent((frame) => frame.text(), { ttlMs: 1_000, scheduler }),
      ),
    ],
  },
  'merge-map-bounded': {
    title: 'mergeMapBounded: work that is slower than the feed',
    source: '--a-b-c-d-e-------------|',
    pipelines: [
      row('mergeMapBounded((frame) => work of 500 ms, { capacity: 1 })', (scheduler) =>
        mergeMapBounded((frame) => timer(5 * unitMs, scheduler).pipe(map(() => frame)), { capacity: 1, scheduler }),
      ),
    ],
  },
  'to-async-iterable': {
    title: 'toAsyncIterable: a loop that is slower than the feed',
    run: () => slowly('for await (… of toAsyncIterable({ capacity: 1 })(frames$))', toAsyncIterable({ capacity: 1 })),
  },
  'to-readable': {
    title: 'toReadable: a Node stream whose reader is slower than the feed',
    run: () => slowly('a reader of toReadable({ capacity: 2 })(frames$)', toReadable({ capacity: 2 })),
  },
  'frames-and-gaps': {
    title: 'frames and gaps: one kind of event',
    source: outageLine,
    pipelines: [row('frames()', () => frames()), row('gaps()', () => gaps())],
  },
  'connection-status': {
    title: 'connectionStatus: whether the feed is live',
    source: '(TO)--a--X-R---(TO)--b--|',
    pipelines: [
      row(
        'connectionStatus()',
        () => connectionStatus(),
        ({ state }) => ({ label: state, kind: 'value' }),
      ),
    ],
  },
  'feed-stats': {
    title: 'feedStats: figures, once a period',
    source: 'O-a-b---c-X----O-d----',
    pipelines: [
      row(
        'feedStats({ everyMs: 500 })',
        (scheduler) => feedStats({ everyMs: 500, scheduler }),
        (stats) => ({ label: `frames: ${stats.frames}`, kind: 'value' }),
      ),
    ],
    endMs: 2_200,
  },
  'share-feed': {
    title: 'shareFeed: one connection for two subscribers',
    source: 'Oa--b--c--d--e--f--',
    pipelines: [
      {
        ...row('first subscriber of tradeFeedEvents$(…).pipe(shareFeed())', (scheduler) =>
          shareFeed({ lingerMs: 300, scheduler }),
        ),
        to: 850,
      },
      { name: 'second subscriber, of the same connection', of: 0, show: showItem, from: 550, to: 1_350 },
    ],
  },
  'until-aborted': {
    title: 'untilAborted: a signal ends the feed',
    source: 'Oa--b--c--d--e--',
    pipelines: [
      {
        name: 'untilAborted(signal), aborted after 0.8 s',
        apply: (source$, scheduler) =>
          defer(() => {
            const controller = new AbortController();
            const abort$ = timer(800, scheduler).pipe(tap(() => controller.abort()));
            return merge(source$.pipe(untilAborted(controller.signal)), abort$.pipe(ignoreElements()));
          }),
        show: showItem,
      },
      row('untilAborted(signal), aborted before', () => untilAborted(AbortSignal.abort())),
    ],
  },
  ...outcomeDiagrams,
  backoff: {
    title: 'backoff: the wait doubles after each failure',
    source: '-',
    sourceName: '',
    pipelines: [
      {
        name: "retryWhen(backoff({ initialDelayMs: 500, jitter: 'none' }))",
        apply: (_source$, scheduler) => {
          let attempts = 0;
          const refused = () => throwError(() => createTradeFeedError({ stage: 'handshake', status: 503 }));
          const attempt$ = defer(() => {
            attempts += 1;
            const number = of(`attempt ${attempts}`);
            return attempts < 4 ? concat(number, refused()) : concat(merge(number, of('opened')), NEVER);
          });
          return attempt$.pipe(retryWhen(backoff({ initialDelayMs: 500, jitter: 'none', scheduler })));
        },
        show: (label) => ({ label, kind: label === 'opened' ? 'event' : 'value' }),
      },
    ],
    endMs: 4_000,
  },
};

/** Accepts `{ n: number }`: a Standard Schema, as zod and valibot create. */
const numbers = {
  '~standard': {
    version: 1,
    vendor: 'diagrams',
    validate: (value) =>
      typeof value?.n === 'number' ? { value } : { issues: [{ message: 'expected number', path: ['n'] }] },
  },
};

/** Runs a diagram. */
export const runNamed = async (name) => {
  const { title, run: custom, ...settings } = diagrams[name];
  const run = custom === undefined ? runDiagram(settings) : await custom();
  // A run without a source has no row for it.
  return { title, ...run, rows: run.rows.filter(({ name: row }) => row !== '') };
};
