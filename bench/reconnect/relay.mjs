// A network of a given round trip, on loopback: a relay that delays every byte by half of it, each way, and the opening of a
// connection by all of it.
//
// The kernel answers a SYN itself, so no relay can delay that. What the client writes `t` ms after its connection was accepted is
// therefore taken as written at `max(t, round trip)`: on a network it could not have been written before the SYN was answered.
// A client cannot tell the two apart by when an answer comes.
import { connect, createServer } from 'node:net';

const { round, floor, max } = Math;
const nowMs = () => Number(process.hrtime.bigint() / 1000n) / 1000;

// A timer of Node is up to 2 ms late, a tenth of the shortest round trip here: the last moment is waited for turn by turn.
const LAST_MOMENT_MS = 1.5;
const queue = [];
let [timer, turn] = [];
const run = () => {
  clearTimeout(timer);
  clearImmediate(turn);
  while (queue.length > 0 && queue[0].dueMs <= nowMs()) queue.shift().act();
  if (queue.length === 0) return;
  const leftMs = queue[0].dueMs - nowMs() - LAST_MOMENT_MS;
  if (leftMs >= 1) timer = setTimeout(run, floor(leftMs));
  else turn = setImmediate(run);
};
const at = (dueMs, act) => {
  let place = queue.length;
  while (place > 0 && queue[place - 1].dueMs > dueMs) place -= 1;
  queue.splice(place, 0, { dueMs, act });
  if (place === 0) run();
};

const piped = (from, to, writtenMs, delayMs) => {
  const later = (act) => at(writtenMs() + delayMs, act);
  from
    .on('data', (bytes) => later(() => to.destroyed || to.write(bytes)))
    .on('end', () => later(() => to.end()))
    .on('close', (isError) => later(() => isError && to.destroy()))
    .on('error', () => {});
};

// What the relay itself takes of a round trip is a part of it: `settle` asks an echo for that, and takes it off the delays.
let ownMs = 0;

const listen = (roundTripMs, port) =>
  new Promise((resolve) => {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const acceptedMs = nowMs();
      const service = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
      const oneWayMs = (roundTripMs - ownMs) / 2;
      piped(client, service, () => max(nowMs(), acceptedMs + roundTripMs), oneWayMs);
      piped(service, client, nowMs, oneWayMs);
    });
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });

const echo = () =>
  new Promise((resolve) => {
    const server = createServer({ noDelay: true }, (client) => client.pipe(client).on('error', () => {}));
    server.listen(0, '127.0.0.1', () => resolve(server.address().port));
  });

const [roundTrips, ...ports] = process.argv.slice(2);
const shortestMs = Number(roundTrips.split(',')[0]);
const lines = {};
for (const roundTripMs of roundTrips.split(',').map(Number))
  lines[roundTripMs] = await Promise.all(ports.map((port) => listen(roundTripMs, round(port))));
const echoPort = await listen(shortestMs, await echo());
process.on('message', ({ takesMs }) => (ownMs = takesMs));
process.send({ type: 'listening', lines, echo: { port: echoPort, roundTripMs: shortestMs } });
