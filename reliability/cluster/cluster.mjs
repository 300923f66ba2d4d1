// Three replica processes, the local service and a broker, with numbered frames.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { lastValueFrom, toArray } from 'rxjs';
import { feedLog } from 'rx-trade-feed/log';
import { startTradeFeedService } from 'rx-trade-feed/testing';
import { startBroker } from '../../test/peers/brokers.mjs';
import { FrameAccount } from '../lib/frame-account.mjs';
import { startLink } from './link.mjs';

const padding = 'x'.repeat(190);
/** A replica that isn't there after this time never comes. */
const patienceMs = 60_000;

/** Waits until a condition holds, and returns its value. */
export const until = async (condition, what) => {
  const end = performance.now() + patienceMs;
  for (;;) {
    const value = condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`Not within ${patienceMs} ms: ${what()}`);
    await delay(2);
  }
};

/** Starts the service and a broker, `nats` or `redis`. The service sends `rate` frames a second. */
export const startCluster = async (kind, rate) => {
  const folder = mkdtempSync(join(tmpdir(), 'rx-trade-feed-cluster-'));
  const broker = await startBroker(kind, folder);
  const limits = { ticketsPerWindow: Infinity, shutdownTimeoutMs: 100 };
  // The tickets name the proxy, which can hold a handshake.
  const link = await startLink(() => Number(new URL(service.baseUrl).port));
  const service = await startTradeFeedService({ limits, publicUrl: `http://127.0.0.1:${link.port}` });
  const account = service.createAccount({ plan: 'developer' });
  const apiKey = account.createApiKey();
  const handshakes = [];
  service.events$.subscribe((event) => {
    if (event.type === 'handshake-accepted') handshakes.push(Date.now());
  });
  const replicas = [];
  const appended = join(folder, 'log');
  let pushed = 0;
  const startedAt = performance.now();
  const pump = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * rate) / 1_000);
    for (; pushed < due; pushed += 1) service.push('market', `${pushed + 1} ${padding}`);
  }, 1);

  const start = async (prefix = 'r') => {
    const name = `${prefix}${replicas.length + 1}`;
    const own = await startLink(() => broker.port);
    const argument = { kind, port: own.port, baseUrl: service.baseUrl, apiKey, name, log: appended };
    const child = fork(new URL('replica.mjs', import.meta.url), [JSON.stringify(argument)]);
    const replica = { name, child, link: own, log: [], roles: [], status: { role: 'left' }, isEnded: false };
    child.on('message', ({ entries = [], status, at }) => {
      replica.log.push(...entries);
      if (status === undefined) return;
      replica.status = status;
      replica.roles.push({ role: status.role, at });
    });
    child.once('exit', () => {
      replica.isEnded = true;
    });
    replicas.push(replica);
    return replica;
  };

  const alive = () => replicas.filter(({ isEnded }) => !isEnded);
  const ownerOf = (among = alive()) => among.find(({ status }) => status.role === 'owning');
  const stateOf = ({ name, status: { role, refused }, log }) => [name, role, refused, log.at(-1)];
  const describe = () => JSON.stringify({ broker: broker.ended ?? 'runs', replicas: alive().map(stateOf) });
  const lastFrame = ({ log }) => log.findLast(({ type }) => type === 'frames')?.to ?? 0;

  return {
    ...{ service, broker, link, account, apiKey, replicas, handshakes, start, alive, ownerOf },
    pushed: () => pushed,
    /** Waits until one of the replicas owns, and all of them have received a frame that was sent from now on. */
    settled: async (among = alive()) => {
      const from = pushed + 1;
      await until(() => among.every((each) => lastFrame(each) >= from), describe);
      return until(() => ownerOf(among), describe);
    },
    until: (condition) => until(condition, describe),
    /** Kills a replica, as `kill -9` does, or another signal. */
    signal: async (replica, signal) => {
      replica.child.kill(signal);
      if (!replica.isEnded) await once(replica.child, 'exit');
    },
    violations: () =>
      replicas.flatMap(({ name, log }) => checkLog(log).violations.map((violation) => `${name}: ${violation}`)),
    /** Checks the log to which the owners have appended. */
    checkAppended: async () => checkLog(await entriesOf(appended)),
    close: async () => {
      clearInterval(pump);
      for (const { child, link: own } of replicas) {
        child.kill('SIGKILL');
        own.close();
      }
      link.close();
      await service.shutdown();
      await broker.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Checks what a replica has emitted. A gap of the cluster has the exact number of missed frames; others have none. */
const checkLog = (entries) => {
  const account = new FrameAccount();
  for (const entry of entries) {
    if (entry.type === 'frames') account.frames(entry.from, entry.to);
    else if (entry.type === 'error') account.restart();
    else account.event(entry);
  }
  return { violations: account.violations.map(({ rule, number }) => `${number} ${rule}`), frames: account.received };
};

/** Returns the frames and gaps of a log as a replica reports them. */
const entriesOf = async (path) => {
  const records = await lastValueFrom(feedLog(path).read$({ follow: false }).pipe(toArray()));
  return records.flatMap((record) => {
    if (record.type === 'gap') return [{ type: 'gap', missed: record.missed }];
    if (record.type !== 'frame') return [];
    const number = Number.parseInt(record.text(), 10);
    return [{ type: 'frames', from: number, to: number }];
  });
};
