// The time from a close frame to the next frame, in round trips. Frames of that time are lost.
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { goal, measured, medianOf, pairedRatio, report, sample, spreadOf, summary } from '../lib/bench.mjs';
import { startListening } from '../support/child.mjs';
import { nowUs } from '../support/stamp.mjs';

const ROUND_TRIPS_MS = [20, 50, 100];
/** How long each connection is open: long enough to open a standby connection. */
const lifeOf = (roundTripMs) => 130 + 2.5 * roundTripMs;
const RECONNECTS = 2;
/** A stream that is open longer than the idle connection of the ticket requests, which the service closes. */
const LONG_LIFE_MS = 500;
const IDLE_MS = 50;

const fileOf = (name) => new URL(`${name}.mjs`, import.meta.url);
const service = await startListening(fileOf('service'));
const relay = await startListening(fileOf('relay'), [ROUND_TRIPS_MS.join(), ...service.ports]);

/** Measures round trips in ms with an echo server. */
const echoed = async (port) => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const took = [];
  for (let n = 0; n < 40; n += 1) {
    const sentUs = nowUs();
    socket.write('a word');
    await once(socket, 'data');
    took.push((nowUs() - sentUs) / 1000);
    await sleep(7);
  }
  socket.destroy();
  // The first one includes the time to connect.
  return summary(took.slice(1));
};
const { port: echoPort, roundTripMs: echoMs } = relay.echo;
relay.send({ overheadMs: Math.max(0, (await echoed(echoPort)).min - echoMs) });
const echo = await echoed(echoPort);

/**
 * Runs one client through the relay.
 *
 * @param lifeMs - how long each connection is open
 * @param idleMs - how long the service keeps the idle connection of the ticket requests open
 */
const run = (name, roundTripMs, { lifeMs = lifeOf(roundTripMs), idleMs = 0, reconnects = RECONNECTS } = {}) => {
  const [ticketPort, streamPort] = relay.lines[roundTripMs];
  const baseUrl = `https://127.0.0.1:${ticketPort}/${streamPort}/${lifeMs}/${idleMs}`;
  return sample(fileOf('sample'), [name, baseUrl, roundTripMs, reconnects], {
    env: { NODE_EXTRA_CA_CERTS: service.caFile },
  });
};

const names = {
  naive: 'naive',
  ours: 'ours',
  limit: 'by hand',
  standby: 'ours, standby',
  limitStandby: 'by hand, standby',
};

const of = await measured({
  title: 'reconnect',
  cells: ROUND_TRIPS_MS.flatMap((roundTripMs) => Object.keys(names).map((name) => [name, roundTripMs])),
  run,
});

const OTHERS_AT_MS = 50;
const long = { lifeMs: LONG_LIFE_MS, idleMs: IDLE_MS, reconnects: 1 };
const others = await measured({
  title: 'reconnect, others',
  cells: ['pooled', 'ours', 'standby'],
  run: (name) => run(name, OTHERS_AT_MS, name === 'pooled' ? {} : long),
});

const goals = ROUND_TRIPS_MS.flatMap((roundTripMs) => {
  const limitOf = (name) =>
    `a client that writes bytes to sockets of Node, without a library, takes ${medianOf(of(name, roundTripMs), 'gap').toFixed(2)} round trips`;
  const at = `at a round trip of ${roundTripMs} ms`;
  return [
    goal({
      id: `reconnect/${roundTripMs}/ours`,
      what: `Round trips ${at}`,
      ratio: spreadOf(of('ours', roundTripMs), 'gap'),
      atMost: 3.2,
      note: limitOf('limit'),
    }),
    goal({
      id: `reconnect/${roundTripMs}/standby`,
      what: `Round trips with standby ${at}`,
      ratio: spreadOf(of('standby', roundTripMs), 'gap'),
      atMost: 2.15,
      note: limitOf('limitStandby'),
    }),
    goal({
      id: `reconnect/${roundTripMs}/naive`,
      what: `Gap of the naive client to ours ${at}`,
      ratio: pairedRatio(of('naive', roundTripMs), of('ours', roundTripMs), 'gap'),
      atLeast: 2.2,
    }),
  ];
});

const row = (first, name, samples) => [
  first,
  name,
  ...['ticketRequest', 'connect', 'upgrade', 'gap', 'first'].map((key) => medianOf(samples, key)),
];
const columns = [
  'round trip',
  'client',
  'ticket requested',
  'connection opened',
  'upgrade sent',
  'first frame',
  'of the first reconnect',
];

await report({
  bench: 'reconnect',
  goals,
  tables: [
    {
      title: 'Round trips after the close frame was read, until …',
      columns,
      rows: ROUND_TRIPS_MS.flatMap((ms) =>
        Object.entries(names).map(([name, shown]) => row(`${ms} ms`, shown, of(name, ms))),
      ),
    },
    {
      title: `The same at ${OTHERS_AT_MS} ms, otherwise`,
      columns,
      rows: [
        row('fetch, its pool still warm', 'naive', others('pooled')),
        row('the idle ticket connection was closed', 'ours', others('ours')),
        row('the idle ticket connection was closed', 'ours, standby', others('standby')),
      ],
    },
  ],
  charts: [
    {
      id: 'reconnect',
      title: 'From the close frame to the first new frame',
      kind: 'bars',
      x: 'round trip',
      y: 'round trips',
      series: Object.entries(names).map(([name, shown]) => ({
        name: shown,
        points: ROUND_TRIPS_MS.map((ms) => [`${ms} ms`, medianOf(of(name, ms), 'gap')]),
      })),
    },
  ],
  facts: {
    'a sample': `a new process that is disconnected ${RECONNECTS} times with 4003 "access expired" after 130 ms and two and a half round trips; the mean of its gaps`,
    'an echo through the relay': `${echo.median.toFixed(2)} ms (at least ${echo.min.toFixed(2)}) for ${echoMs} ms, after the overhead of the relay was subtracted`,
    TLS: 'on both origins; the certificate has an EC key',
  },
});
process.exit(0);
