// Simulates a network with a round trip on loopback: delays every byte by half of the round trip, and a new connection by all of it.
//
// The kernel answers a SYN itself, so the relay can't delay it. Instead, bytes that the client writes `t` ms after its connection was
// accepted count as written at `max(t, round trip)`: on a network they couldn't be written earlier. The answers arrive at the same time
// as on a network.
import { connect, createServer } from 'node:net';
import { freePort } from '../support/listen.mjs';

const nowMs = () => Number(process.hrtime.bigint() / 1000n) / 1000;

// A Node timer is up to 2 ms late, too much for a round trip of 50 ms. So the last 1.5 ms are waited for with `setImmediate`.
const LAST_MOMENT_MS = 1.5;
const queue = [];
let [timer, turn] = [];
const run = () => {
  clearTimeout(timer);
  clearImmediate(turn);
  while (queue.length > 0 && queue[0].dueMs <= nowMs()) queue.shift().act();
  if (queue.length === 0) return;
  const leftMs = queue[0].dueMs - nowMs() - LAST_MOMENT_MS;
  if (leftMs >= 1) timer = setTimeout(run, Math.floor(leftMs));
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

const listen = (roundTripMs, port) => {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const acceptedMs = nowMs();
    const service = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    piped(client, service, () => Math.max(nowMs(), acceptedMs + roundTripMs), roundTripMs / 2);
    piped(service, client, nowMs, roundTripMs / 2);
  });
  return freePort(server);
};

const [roundTrips, ...ports] = process.argv.slice(2);
const lines = {};
for (const roundTripMs of roundTrips.split(',').map(Number))
  lines[roundTripMs] = await Promise.all(ports.map((port) => listen(roundTripMs, Number(port))));
process.send({ type: 'listening', lines });
process.once('disconnect', () => process.exit());
