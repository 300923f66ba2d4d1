// The time from a close frame to the next frame, in round trips. Frames of that time are lost.
import { goal, measured, medianOf, pairedRatio, report, sample, spreadOf } from '../lib/bench.mjs';
import { startListening } from '../support/child.mjs';

const ROUND_TRIPS_MS = [50, 100];
/** How long each connection is open: long enough to open a standby connection. */
const lifeOf = (roundTripMs) => 130 + 2.5 * roundTripMs;
const RECONNECTS = 2;
const fileOf = (name) => new URL(`${name}.mjs`, import.meta.url);
const service = await startListening(fileOf('service'));
const relay = await startListening(fileOf('relay'), [ROUND_TRIPS_MS.join(), ...service.ports]);

const run = (name, roundTripMs) => {
  const [ticketPort, streamPort] = relay.lines[roundTripMs];
  const baseUrl = `https://127.0.0.1:${ticketPort}/${streamPort}/${lifeOf(roundTripMs)}`;
  return sample(fileOf('sample'), [name, baseUrl, roundTripMs, RECONNECTS], {
    env: { NODE_EXTRA_CA_CERTS: service.caFile },
  });
};

const names = { naive: 'naive', ours: 'ours', standby: 'ours, standby' };

const of = await measured({
  title: 'reconnect',
  cells: ROUND_TRIPS_MS.flatMap((roundTripMs) => Object.keys(names).map((name) => [name, roundTripMs])),
  run,
});

const goals = ROUND_TRIPS_MS.flatMap((roundTripMs) => {
  const at = `at a round trip of ${roundTripMs} ms`;
  return [
    goal({
      id: `reconnect/${roundTripMs}/ours`,
      what: `Round trips ${at}`,
      ratio: spreadOf(of('ours', roundTripMs), 'gap'),
      atMost: 3.2,
    }),
    goal({
      id: `reconnect/${roundTripMs}/standby`,
      what: `Round trips with standby ${at}`,
      ratio: spreadOf(of('standby', roundTripMs), 'gap'),
      atMost: 2.15,
    }),
    goal({
      id: `reconnect/${roundTripMs}/naive`,
      what: `Gap of the naive client to ours ${at}`,
      ratio: pairedRatio(of('naive', roundTripMs), of('ours', roundTripMs), 'gap'),
      atLeast: 2.2,
    }),
  ];
});

report({
  bench: 'reconnect',
  goals,
  tables: [
    {
      title: 'Round trips from the close frame, when it is read, to the first frame',
      columns: ['round trip', 'client', 'first frame'],
      rows: ROUND_TRIPS_MS.flatMap((ms) =>
        Object.entries(names).map(([name, shown]) => [`${ms} ms`, shown, medianOf(of(name, ms), 'gap')]),
      ),
    },
  ],
});
process.exit(0);
