/** The benchmarks that measure something for docs/performance, in the order in which `all` runs them. */
export const benchmarks = {
  replay: 'receiving frames that are replayed from memory, compared with other packages',
  e2e: 'receiving frames over loopback, with and without TLS and live objects, compared with other packages',
  held: 'the same for frames that stay bytes, and for frames that are held, compared with ws',
  node24: 'the same on Node 24, compared with ws',
  app: 'an app that decodes, shares and windows a feed, compared with code written by hand',
  settle: 'what became of each trade, compared with a join over a Map',
  log: 'a log: append, read and commit, compared with code written by hand; the delay to another process',
  filter: 'filters before parsing, compared with JSON.parse',
  micro: 'single steps: a Frame, an operator, a decoder',
  memory: 'the memory of frames that operators hold',
  stall: 'a blocked main thread, with and without a worker',
  reconnect: 'the time from a close frame to the next frame',
  import: 'the cost of a start: an import, and the first feed',
  growth: 'the cost of one unit as the number of units grows',
  fanout: 'a server and its pages: the relay, compared with Server-Sent Events written by hand',
  cluster: 'replicas over nats-server: the CPU time and the delay of a frame',
};

const program = (what, file) => ({ what, node: ['--expose-gc', `bench/${file}`], needsBuild: true });

/** All programs of `npm run bench`. */
export const programs = {
  ...Object.fromEntries(Object.entries(benchmarks).map(([name, what]) => [name, program(what, `${name}/index.mjs`)])),
  check: program(
    'for a change of a hot path: fails if receiving, filtering or an import became slower (1 minute)',
    'check/index.mjs',
  ),
  page: {
    what: 'the page of the example app in Chromium at 5,000 frames a second: fails if it was blocked for 200 ms (2 minutes)',
    ...{ node: ['--test', 'bench/page/index.mjs'], needsBuild: true },
  },
  rejoin: program(
    '1,000 pages that come back to a relay together: fails if they hold its event loop for 50 ms (2 minutes)',
    'rejoin/index.mjs',
  ),
};
