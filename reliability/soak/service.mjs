// The service of the soak, in a separate process: sends numbered frames, and causes a fault when the parent sends a message.
import { subscribe } from 'node:diagnostics_channel';
import { setTimeout as delay } from 'node:timers/promises';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { startService } from '../lib/service.mjs';
import { createPump, tailsOfFrames } from './pump.mjs';

const { rate, accounts, outageMs } = JSON.parse(process.argv[2]);
const sockets = new Set();
subscribe('net.server.socket', ({ socket }) => {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
});

const opened = new BehaviorSubject(0);
let isOpen = false;
const onEvent = ({ type, account }) => {
  if (account !== 'account-1' || !/^(handshake-accepted|connection-closed)$/.test(type)) return;
  isOpen = type === 'handshake-accepted';
  pump.setConnected(isOpen);
  if (!isOpen) return;
  pump.start();
  opened.next(opened.value + 1);
};
const start = (port) =>
  startService({ port, accounts, limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 250 }, onEvent });
let server = await start();
const pump = createPump((text) => server.service.push('market', text), await tailsOfFrames(), rate ?? Infinity);
const whenOpen = (times = 1) => firstValueFrom(opened.pipe(filter((count) => isOpen && count >= times)));

/** Stops the service, and starts it again on the same port. */
const restart = async () => {
  const port = Number(new URL(server.service.baseUrl).port);
  await server.service.shutdown();
  await delay(outageMs);
  server = await start(port);
};
const expireAll = () => server.accounts.forEach((account) => account.expireAccess());

const faults = {
  // As a killed process ends: without close frames.
  killed: () => {
    sockets.forEach((socket) => socket.destroy());
    return restart();
  },
  shutdown: restart,
  reset: () => sockets.forEach((socket) => socket.resetAndDestroy()),
  expired: expireAll,
  credentials: async () => {
    server.service.failCredentials(true);
    expireAll();
    await delay(outageMs);
    server.service.failCredentials(false);
  },
};

const commands = {
  fault: async ({ kind }) => {
    await whenOpen();
    const before = opened.value;
    await faults[kind]();
    await whenOpen(before + 1);
    process.send({ type: 'fault-over' });
  },
  finish: async () => {
    await whenOpen();
    pump.stop();
    // With these frames the client knows how many it missed in the last outage.
    pump.send(10);
    process.send({ type: 'finished', sent: pump.sent });
  },
};
// One command at a time: `finish` waits until a fault is over.
let last = Promise.resolve();
process.on('message', (message) => {
  if (message.type === 'taken') return pump.taken(message.number);
  last = last.then(() => commands[message.type](message));
});
process.once('disconnect', () => process.exit());
process.send({ type: 'ready', baseUrl: server.service.baseUrl, keys: server.keys });
