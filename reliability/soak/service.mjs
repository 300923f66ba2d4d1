// The service of the soak, in a process of its own: numbered frames, and trouble when the parent says so.
import { setTimeout as delay } from 'node:timers/promises';
import { BehaviorSubject, filter, firstValueFrom } from 'rxjs';
import { restartable } from '../lib/restartable.mjs';
import { makePump, tailsOfFrames } from './pump.mjs';

const { rate, accounts, outageMs } = JSON.parse(process.argv[2] ?? '{}');
const opened = new BehaviorSubject(0);
let isOpen = false;
const server = await restartable({
  accounts,
  options: { limits: { ticketsPerWindow: Infinity, shutdownTimeoutMs: 250 } },
  onEvent: ({ type, account }) => {
    if (account !== 'account-1' || !/^(handshake-accepted|connection-closed)$/.test(type)) return;
    isOpen = type === 'handshake-accepted';
    pump.seen(isOpen);
    if (isOpen) opened.next(opened.value + 1);
  },
});
const pump = makePump(server.push, await tailsOfFrames(), rate ?? Infinity);
const whenOpen = (least = 1) => firstValueFrom(opened.pipe(filter((times) => isOpen && times >= least)));

const troubles = {
  // As a process that is killed, and one that is ended with 1001.
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
  trouble: async ({ kind }) => {
    await whenOpen();
    const before = opened.value;
    await troubles[kind]();
    await whenOpen(before + 1);
    process.send?.({ type: 'trouble-over', kind });
  },
  finish: async () => {
    await whenOpen();
    pump.stop();
    // After the last outage: what was missed in it is told by the gap before these.
    pump.send(10);
    process.send?.({ type: 'finished', sent: pump.sent });
  },
};
// One at a time: the end waits until a trouble is over.
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
