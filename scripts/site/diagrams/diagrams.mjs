// The diagrams of the operators. Each is a real run in virtual time.
import * as feed from 'rx-trade-feed';
import { untilAborted } from 'rx-trade-feed/interop';
import { concat, defer, ignoreElements, map, merge, NEVER, of, retryWhen, tap, throwError, timer } from 'rxjs';
import { outcomeDiagrams } from './outcomes.mjs';
import { runDiagram, showEvent, unitMs } from './run.mjs';
import { runLoop } from './run-loop.mjs';

/** How a value is drawn, by its type. All others are events. */
const drawn = {
  frame: (frame) => ({ label: /"to":"(\w)"/.exec(frame.text())?.[1] ?? frame.text(), kind: 'frame' }),
  window: ({ start, end, frames: inside, count, complete }) => {
    const names = inside.map((frame) => frame.text()).join(' ') || (count === 0 ? 'empty' : count);
    // Overlapping windows begin every 500 ms: every second one is drawn lower.
    const level = Math.abs(start % 1_000) === 500 ? 1 : 0;
    return {
      ...{ label: complete ? names : `${names}, incomplete`, kind: 'window' },
      span: { from: start, to: end, level, isComplete: complete },
    };
  },
  conflated: ({ value, count }) => valueOf(`${value.text()}, of ${count}`),
  decoded: ({ value }) => valueOf(`n = ${value.n}`),
  Left: ({ left }) => valueOf(`left ${left.issues[0].path}`),
  Right: ({ right }) => valueOf(`right n = ${right.value.n}`),
};

const valueOf = (label) => ({ label, kind: 'value' });

const showItem = (value) => {
  if (typeof value === 'string') return valueOf(value);
  if ('framesPerSecond' in value) return valueOf(`frames: ${value.frames}`);
  // The status of a connection.
  if ('state' in value) return valueOf(value.state);
  return (drawn[value.type ?? value._tag] ?? showEvent)(value);
};

/** Runs a loop with work of 500 ms over what an operator returns. */
const slowly = (name, iterableOf) =>
  runLoop({
    ...{ name: `${name}, with 500 ms of work`, source: '--a-b-c-d-------|' },
    ...{ iterableOf, workMs: 5 * unitMs, show: showItem },
  });

/** Accepts `{ n: number }`: a Standard Schema, as zod and valibot create. */
const schema = {
  '~standard': {
    version: 1,
    vendor: 'diagrams',
    validate: (value) =>
      typeof value?.n === 'number' ? { value } : { issues: [{ message: 'expected number', path: ['n'] }] },
  },
};

/** Completes a feed after a time. */
const abortedAfter = (ms) => (source$) =>
  defer(() => {
    const controller = new AbortController();
    const abort$ = timer(ms).pipe(tap(() => controller.abort()));
    return merge(source$.pipe(untilAborted(controller.signal)), abort$.pipe(ignoreElements()));
  });

/** Connects at the fourth attempt. */
const attempts = () => {
  let attempts = 0;
  const refused = () => throwError(() => feed.createTradeFeedError({ stage: 'handshake', status: 503 }));
  const attempt$ = defer(() => {
    attempts += 1;
    const number = of(`attempt ${attempts}`);
    return attempts < 4 ? concat(number, refused()) : concat(merge(number, of('opened')), NEVER);
  });
  return attempt$.pipe(retryWhen(feed.backoff({ initialDelayMs: 500, jitter: 'none' })));
};

const outage = 'O-a-b-X---O-a-c-|';

/**
 * Each diagram by its name: a title, and what `runDiagram` runs, or a function `run` that returns the rows. A pipeline is the code of an
 * operator, or a text with an operator or an object of `runDiagram`.
 */
export const diagrams = {
  'tumbling-window': {
    title: 'tumblingWindow: windows side by side, with the gaps in them',
    source: 'Oa--b------c-X----O-d-------',
    pipelines: ['tumblingWindow({ lengthMs: 1_000 })'],
    endMs: 3_100,
  },
  'sliding-window': {
    title: 'slidingWindow: windows that overlap',
    source: 'Oa----b----c-----------',
    pipelines: ['slidingWindow({ lengthMs: 1_000, everyMs: 500 })'],
    endMs: 2_200,
  },
  'count-window': {
    title: 'countWindow: windows of a number of frames',
    source: 'O-a--b--c--X----O--d---',
    pipelines: ['countWindow(2)'],
  },
  conflate: {
    title: 'conflate: the newest value of each key, once a period',
    source: 'O-a-p-b----------c--q-------',
    pipelines: {
      'conflate(key, 1_000), one key for a, b, c and one for p, q': feed.conflate((frame) => frame.text() < 'm', 1_000),
    },
    endMs: 2_300,
  },
  'where-field': {
    title: 'whereField: a filter over one field of frames',
    source: outage,
    payloads: { a: '{"to":"a"}', b: '{"to":"b","by":"a"}', c: '{"to":"c"}' },
    pipelines: ["whereField('to', ['a', 'c'])"],
  },
  'map-values': {
    title: 'mapValues and filterValues: other values, the same events',
    source: outage,
    pipelines: ['mapValues((frame) => frame.text().toUpperCase())', "filterValues((frame) => frame.text() !== 'b')"],
  },
  'where-bytes': {
    title: 'whereBytes: a filter over the bytes of frames',
    source: outage,
    payloads: { a: '{"to":"a"}', b: '{"to":"b"}', c: '{"to":"c"}' },
    pipelines: [`whereBytes('"a"')`],
  },
  'decode-with': {
    title: 'decodeWith and decodeEither: JSON that a schema checks',
    source: 'O-a--b--c-|',
    payloads: { a: '{"n":1}', b: '{"n":"x"}', c: '{"n":3}' },
    pipelines: { 'decodeWith(schema)': feed.decodeWith(schema), 'decodeEither(schema)': feed.decodeEither(schema) },
  },
  'distinct-recent': {
    title: 'distinctRecent: a frame that arrives twice',
    source: 'O-a-b-a-X-O-b---------a-|',
    pipelines: ['distinctRecent((frame) => frame.text(), { ttlMs: 1_000 })'],
  },
  'merge-map-bounded': {
    title: 'mergeMapBounded: work that is slower than the feed',
    source: '--a-b-c-d-e-------------|',
    pipelines: {
      'mergeMapBounded((frame) => work of 500 ms, { capacity: 1 })': feed.mergeMapBounded(
        (frame) => timer(5 * unitMs).pipe(map(() => frame)),
        { capacity: 1 },
      ),
    },
  },
  'to-async-iterable': {
    title: 'toAsyncIterable: a loop that is slower than the feed',
    run: () =>
      slowly('for await (… of toAsyncIterable({ capacity: 1 })(frames$))', feed.toAsyncIterable({ capacity: 1 })),
  },
  'to-readable': {
    title: 'toReadable: a Node stream whose reader is slower than the feed',
    run: () => slowly('a reader of toReadable({ capacity: 2 })(frames$)', feed.toReadable({ capacity: 2 })),
  },
  'frames-and-gaps': {
    title: 'frames and gaps: one kind of event',
    source: '(TO)a-b-X--R--(TO)-(Gc)-d|',
    pipelines: ['frames()', 'gaps()'],
  },
  'connection-status': {
    title: 'connectionStatus: whether the feed is live',
    source: '(TO)--a--X-R---(TO)--b--|',
    pipelines: ['connectionStatus()'],
  },
  'feed-stats': {
    title: 'feedStats: figures, once a period',
    source: 'O-a-b---c-X----O-d----',
    pipelines: ['feedStats({ everyMs: 500 })'],
    endMs: 2_200,
  },
  'share-feed': {
    title: 'shareFeed: one connection for two subscribers',
    source: 'Oa--b--c--d--e--f--',
    pipelines: {
      'first subscriber of shareFeed()': { apply: feed.shareFeed({ lingerMs: 300 }), to: 850 },
      'second subscriber': { of: 0, from: 550, to: 1_350 },
    },
  },
  'until-aborted': {
    title: 'untilAborted: a signal ends the feed',
    source: 'Oa--b--c--d--e--',
    pipelines: {
      'untilAborted(signal), aborted after 0.8 s': abortedAfter(800),
      'untilAborted(signal), aborted before': untilAborted(AbortSignal.abort()),
    },
  },
  ...outcomeDiagrams,
  backoff: {
    title: 'backoff: the wait doubles after each failure',
    source: '',
    pipelines: { "retryWhen(backoff({ initialDelayMs: 500, jitter: 'none' }))": attempts },
    endMs: 4_000,
  },
};

/** Returns the operator that the code of an expression makes. */
const operatorOf = (code) => new Function(...Object.keys(feed), `return ${code}`)(...Object.values(feed));

/** Runs a diagram. */
export const runNamed = async (name) => {
  const { title, run, pipelines, ...settings } = diagrams[name];
  if (run) return { title, ...(await run()) };
  const named = Array.isArray(pipelines)
    ? pipelines.map((code) => [code, operatorOf(code)])
    : Object.entries(pipelines);
  const rows = named.map(([name, pipeline]) => ({
    ...{ name, show: showItem },
    ...(typeof pipeline === 'function' ? { apply: pipeline } : pipeline),
  }));
  return { title, ...runDiagram({ ...settings, pipelines: rows }) };
};
