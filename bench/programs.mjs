const benchmark = (what, file) => ({ what, node: ['--expose-gc', `bench/${file}/index.mjs`], needsBuild: true });

const benchmarks = {
  receiving:
    'receiving frames over loopback, next to ws and Bun: with and without TLS and live objects, as text, as bytes, held',
  replay: 'receiving frames that are replayed from memory: these figures vary least',
  app: 'an app that decodes, shares and windows a feed, next to one written by hand',
  micro: 'single steps: a Frame, an operator, a decoder',
  filter: 'filters before parsing, next to JSON.parse',
  settle: 'what became of each trade, next to a join over a Map',
  log: 'a log: append, read and commit, next to code written by hand; the delay to another process',
  fanout: 'a server and its pages: the relay, next to Server-Sent Events written by hand',
  rejoin: '1,000 pages that come back to a relay together: fails if they hold its event loop for 50 ms (2 minutes)',
  cluster: 'replicas over nats-server: the CPU time of a frame, and the delay from the owner to a follower',
  reconnect: 'the time from a close frame to the next frame',
  stall: 'a blocked main thread, with and without a worker',
  memory: 'the memory of frames that operators hold',
  import: 'the cost of a start: an import, and the first feed',
  check: 'for a change of a hot path: fails if receiving, filtering or an import became slower (1 minute)',
};

/** All programs of `npm run bench`. */
export const programs = {
  ...Object.fromEntries(Object.entries(benchmarks).map(([name, what]) => [name, benchmark(what, name)])),
  'rejoin-stored': {
    what: '8 pages that read 8 MiB each from a log: fails if they hold the event loop of a relay for 25 ms',
    node: ['bench/rejoin/stored.mjs'],
    needsBuild: true,
  },
  charts: {
    what: 'measures nothing: draws the charts of docs/performance.md from bench/results',
    node: ['bench/charts.mjs'],
  },
};
