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

const outageLine = '(TO)a-b-X--R--(TO)c-d|';
const slowLine = '--a-b-c-d-------|';

/** A row with the messages of a source. */
const sourceRow = (line) => ({ name: 'source', messages: messagesOf(line) });

/** Each diagram by its name: a title, and what `runDiagram` runs, or a function `run` that returns the rows. */
export const diagrams = {
  'tumbling-window': {
    title: 'tumblingWindow: windows side by side, with the gaps in them',
    source: 'Oa--b------c-X----O-d-------',
    pipelines: [
      {
        name: 'tumblingWindow({ lengthMs: 1_000 })',
        apply: (source$, scheduler) => source$.pipe(tumblingWindow({ lengthMs: 1_000, scheduler })),
        show: (window) => showWindow(window),
      },
    ],
    endMs: 3_100,
  },
  'sliding-window': {
    title: 'slidingWindow: windows that overlap',
    source: 'Oa----b----c-----------',
    pipelines: [
      {
        name: 'slidingWindow({ lengthMs: 1_000, everyMs: 500 })',
        apply: (source$, scheduler) => source$.pipe(slidingWindow({ lengthMs: 1_000, everyMs: 500, scheduler })),
        show: (window) => showWindow(window, Math.abs(window.start / 500) % 2),
      },
    ],
    endMs: 2_200,
  },
  'count-window': {
    title: 'countWindow: windows of a number of frames',
    source: 'O-a--b--c--X----O--d---',
    pipelines: [
      {
        name: 'countWindow(2)',
        apply: (source$, scheduler) => source$.pipe(countWindow(2, { scheduler })),
        show: (window) => showWindow(window),
      },
    ],
  },
  conflate: {
    title: 'conflate: the newest value of each key, once a period',
    source: 'O-a-p-b----------c--q-------',
    pipelines: [
      {
        name: 'conflate(key, 1_000): a, b and c have one key; p and q another',
        apply: (source$, scheduler) =>
          source$.pipe(conflate((frame) => (frame.text() < 'm' ? 'first' : 'second'), 1_000, { scheduler })),
        show: (value) =>
          value.type === 'conflated'
            ? { label: `${value.value.text()}, of ${value.count}`, kind: 'value' }
            : showItem(value),
      },
    ],
    endMs: 2_300,
  },
  'where-field': {
    title: 'whereField: a filter over one field of frames',
    source: 'O-a-b-X---O-a-c-|',
    payloads: { a: '{"to":"a"}', b: '{"to":"b","by":"a"}', c: '{"to":"c"}' },
    pipelines: [
      {
        name: `whereField('to', ['a', 'c'])`,
        apply: (source$) => source$.pipe(whereField('to', ['a', 'c'])),
        show: (value) => (value.type === 'frame' ? { label: value.json().to, kind: 'frame' } : showItem(value)),
      },
    ],
  },
  'map-values': {
    title: 'mapValues and filterValues: other values, the same events',
    source: 'O-a-b-X---O-a-c-|',
    pipelines: [
      {
        name: 'mapValues((frame) => frame.text().toUpperCase())',
        apply: (source$) => source$.pipe(mapValues((frame) => frame.text().toUpperCase())),
        show: (value) => (typeof value === 'string' ? { label: value, kind: 'value' } : showItem(value)),
      },
      {
        name: "filterValues((frame) => frame.text() !== 'b')",
        apply: (source$) => source$.pipe(filterValues((frame) => frame.text() !== 'b')),
        show: showItem,
      },
    ],
  },
  'where-bytes': {
    title: 'whereBytes: a filter over the bytes of frames',
    source: 'O-a-b-X---O-a-c-|',
    payloads: { a: '{"to":"a"}', b: '{"to":"b"}', c: '{"to":"c"}' },
    pipelines: [
      {
        name: `whereBytes('"a"')`,
        apply: (source$) => source$.pipe(whereBytes('"a"')),
        show: (value) => (value.type === 'frame' ? { label: value.json().to, kind: 'frame' } : showItem(value)),
      },
    ],
  },
  'decode-with': {
    title: 'decodeWith and decodeEither: JSON that a schema checks',
    source: 'O-a--b--c-|',
    payloads: { a: '{"n":1}', b: '{"n":"x"}', c: '{"n":3}' },
    pipelines: [
      {
        name: 'decodeWith(schema)',
        apply: (source$) => source$.pipe(decodeWith(numbers)),
        show: (value) =>
          value.type === 'decoded' ? { label: `n = ${value.value.n}`, kind: 'value' } : showItem(value),
      },
      {
        name: 'decodeEither(schema)',
        apply: (source$) => source$.pipe(decodeEither(numbers)),
        show: (value) => {
          if (value._tag === 'Left') return { label: `left ${value.left.issues[0].path}`, kind: 'value' };
          return value._tag === 'Right'
            ? { label: `right n = ${value.right.value.n}`, kind: 'value' }
            : showItem(value);
        },
      },
    ],
  },
  'distinct-recent': {
    title: 'distinctRecent: a frame that arrives twice',
    source: 'O-a-b-a-X-O-b---------a-|',
    pipelines: [
      {
        name: 'distinctRecent((frame) => frame.text(), { ttlMs: 1_000 })',
        apply: (source$, scheduler) =>
          source$.pipe(distinctRecent((frame) => frame.text(), { ttlMs: 1_000, scheduler })),
        show: showItem,
      },
    ],
  },
  'merge-map-bounded': {
    title: 'mergeMapBounded: work that is slower than the feed',
    source: '--a-b-c-d-e-------------|',
    pipelines: [
      {
        name: 'mergeMapBounded((frame) => work of 500 ms, { capacity: 1 })',
        apply: (source$, scheduler) =>
          source$.pipe(
            mergeMapBounded((frame) => timer(5 * unitMs, scheduler).pipe(map(() => frame)), { capacity: 1, scheduler }),
          ),
        show: showItem,
      },
    ],
  },
  'to-async-iterable': {
    title: 'toAsyncIterable: a loop that is slower than the feed',
    run: async () => {
      const messages = await runLoop({
        source: slowLine,
        iterableOf: toAsyncIterable({ capacity: 1 }),
        workMs: 5 * unitMs,
        show: showItem,
      });
      const name = 'for await (… of toAsyncIterable({ capacity: 1 })(frames$)), with 500 ms of work';
      return runOf([sourceRow(slowLine), { name, messages }]);
    },
  },
  'to-readable': {
    title: 'toReadable: a Node stream whose reader is slower than the feed',
    run: async () => {
      const messages = await runLoop({
        source: slowLine,
        iterableOf: toReadable({ capacity: 2 }),
        workMs: 5 * unitMs,
        show: showItem,
      });
      const name = 'a reader of toReadable({ capacity: 2 })(frames$), with 500 ms of work';
      return runOf([sourceRow(slowLine), { name, messages }]);
    },
  },
  'frames-and-gaps': {
    title: 'frames and gaps: one kind of event',
    source: outageLine,
    pipelines: [
      { name: 'frames()', apply: (source$) => source$.pipe(frames()), show: showItem },
      { name: 'gaps()', apply: (source$) => source$.pipe(gaps()), show: showItem },
    ],
  },
  'connection-status': {
    title: 'connectionStatus: whether the feed is live',
    source: '(TO)--a--X-R---(TO)--b--|',
    pipelines: [
      {
        name: 'connectionStatus()',
        apply: (source$) => source$.pipe(connectionStatus()),
        show: ({ state }) => ({ label: state, kind: 'value' }),
      },
    ],
  },
  'feed-stats': {
    title: 'feedStats: figures, once a period',
    source: 'O-a-b---c-X----O-d----',
    pipelines: [
      {
        name: 'feedStats({ everyMs: 500 })',
        apply: (source$, scheduler) => source$.pipe(feedStats({ everyMs: 500, scheduler })),
        show: (stats) => ({ label: `frames: ${stats.frames}`, kind: 'value' }),
      },
    ],
    endMs: 2_200,
  },
  'share-feed': {
    title: 'shareFeed: one connection for two subscribers',
    source: 'Oa--b--c--d--e--f--',
    pipelines: [
      {
        name: 'first subscriber of tradeFeedEvents$(…).pipe(shareFeed())',
        apply: (source$, scheduler) => source$.pipe(shareFeed({ lingerMs: 300, scheduler })),
        show: showItem,
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
      {
        name: 'untilAborted(signal), aborted before',
        apply: (source$) => source$.pipe(untilAborted(AbortSignal.abort())),
        show: showItem,
      },
    ],
  },
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
