// The service of the soak, in a separate process: sends numbered frames, and causes a fault when the parent sends a message.
import { setTimeout as delay } from 'node:timers/promises';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { restartable } from '../lib/restartable.mjs';
import { createPump, tailsOfFrames } from './pump.mjs';

const { rate, accounts, outageMs } = JSON.parse(process.argv[2] ?? '{}');
const opened = new BehaviorSubject(0);
let isOpen = false;
const server = await restartable({
  accounts,
  options: { limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 250 } },
  onEvent: ({ type, account }) => {
    if (account !== 'account-1' || !/^(handshake-accepted|connection-closed)$/.test(type)) return;
    isOpen = type === 'handshake-accepted';
    pump.setConnected(isOpen);
    if (isOpen) opened.next(opened.value + 1);
  },
});
const pump = createPump(server.push, await tailsOfFrames(), rate ?? Infinity);
const whenOpen = (times = 1) => firstValueFrom(opened.pipe(filter((count) => isOpen && count >= times)));

const faults = {
  killed: async () => {
    await server.cut();
    await delay(outageMs);
    await server.start();
  },
  shutdown: async () => {
    await server.shutdown();
    await delay(outageMs);
    await server.start();
  },
  reset: () => server.reset(),
  expired: () => server.expireAll(),
  credentials: async () => {
    server.service.failCredentials(true);
    server.expireAll();
    await delay(outageMs);
    server.service.failCredentials(false);
  },
};

const commands = {
  start: () => pump.start(),
  fault: async ({ kind }) => {
    await whenOpen();
    const before = opened.value;
    await faults[kind]();
    await whenOpen(before + 1);
    process.send?.({ type: 'fault-over', kind });
  },
  finish: async () => {
    await whenOpen();
    pump.stop();
    // With these frames the client knows how many it missed in the last outage.
    pump.send(10);
    process.send?.({ type: 'finished', sent: pump.sent });
  },
};
// One command at a time: `finish` waits until a fault is over.
let last = Promise.resolve();
process.on('message', (message) => {
  if (message.type === 'taken') return pump.taken(message.number);
  last = last.then(() => commands[message.type](message));
});
process.once('disconnect', () => {
  pump.stop();
  void server.shutdown();
});
process.send?.({ type: 'ready', baseUrl: server.baseUrl, keys: server.keys });
