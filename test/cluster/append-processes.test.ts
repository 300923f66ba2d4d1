/**
 * @lane brokers
 * @ci
 */
import { describe, expect, it } from '@jest/globals';
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lastValueFrom, toArray } from 'rxjs';
import { type FeedLog, feedLog } from '../../src/log/index.js';
import { jetStreamLog } from '../../src/nats/index.js';
import { startTradeFeedService } from '../../src/testing/index.js';
import { bundledPrograms } from '../support/bundled-programs.js';
import { startLimitMs, waitFor } from '../support/wait-for.js';
import { describeInstalled, type RealServer, startServer } from './support/real-server.js';
import { shortTimes } from './support/replicas.js';

const logs: readonly (readonly [string, 'redis' | 'nats'])[] = [
  ['a folder', 'redis'],
  ['JetStream', 'nats'],
];
describe.each(logs)('the owner of a cluster that appends to %s', (_, kind) => {
  describeInstalled(kind, `over a real ${kind}-server`, () => {
    const program = bundledPrograms('test/cluster/programs', ['append.mjs']);

    it('appends nothing after it was stopped: the next owner continues, with a gap in place of what is missing', async () => {
      await using server = await startServer(kind);
      await using service = await startTradeFeedService();
      const folder = mkdtempSync(join(tmpdir(), 'cluster-log-'));
      const apiKey = service.createAccount({ plan: 'developer' }).createApiKey();
      const { port } = server.broker;
      const children: ChildProcess[] = [];

      const start = (replica: string) => {
        const options = { kind, port, folder, replica, apiKey, baseUrl: service.baseUrl, ...shortTimes };
        const child = fork(program('append.mjs'), [JSON.stringify(options)]);
        children.push(child);
        const seen = { child, role: '', texts: [] as string[], codes: [] as string[] };
        child.on('message', ({ role = seen.role, text, code }: Readonly<Record<string, string>>) => {
          seen.role = role;
          if (text !== undefined) seen.texts.push(text);
          if (code !== undefined) seen.codes.push(code);
        });
        return seen;
      };
      let pushed = 0;
      const push = (): void => service.push('market', String((pushed += 1)));
      const eventually = <T>(condition: () => T | Promise<T>) => waitFor(condition, { limitMs: startLimitMs });
      /** Pushes frames until a replica appends the last one. */
      const append = (to: ReturnType<typeof start>) =>
        eventually(() => {
          const isLast = to.texts.includes(String(pushed));
          if (!isLast) push();
          return isLast;
        });
      /** Waits until the log has the last frame. Returns its frames as numbers, and the types of the other records. */
      const stored = (log: FeedLog) =>
        eventually(async () => {
          const records = await lastValueFrom(log.read$({ follow: false }).pipe(toArray()));
          const words = records.map((each) => (each.type === 'frame' ? Number(each.text()) : each.type));
          return words.includes(pushed) ? words : undefined;
        });

      try {
        const log = await logOf(kind, server, folder);
        const first = start('first');
        await eventually(() => first.role === 'owning');
        const second = start('second');
        await eventually(() => second.role === 'following');
        await append(first);
        await stored(log);
        const before = pushed;
        first.child.kill('SIGSTOP');
        // They arrive at the stopped process: its connection is still the newest.
        for (let n = 0; n < 3; n += 1) push();
        await eventually(() => second.role === 'owning');
        // A stopped process keeps the lock of a folder.
        if (kind === 'redis') await eventually(() => second.codes.includes('log-in-use'));
        else await append(second);
        const { length } = first.codes;
        first.child.kill('SIGCONT');
        await eventually(() => first.codes.length > length && first.role === 'following');
        expect(first.codes[length]).toBe('log-fenced');
        await append(second);
        const records = await stored(log);

        const frames = records.filter((each) => typeof each === 'number');
        expect(frames).toEqual([...new Set(frames)].toSorted((one, other) => one - other));
        expect(frames).toContain(before);
        expect(frames).not.toContain(before + 1);
        for (const [n, frame] of frames.slice(1).entries()) {
          const between = records.slice(records.indexOf(frames[n]!), records.indexOf(frame));
          if (frame !== frames[n]! + 1) expect(between).toContain('gap');
        }
      } finally {
        for (const child of children) child.kill('SIGKILL');
        rmSync(folder, { recursive: true, force: true });
      }
    });
  });
});

const logOf = async (kind: 'redis' | 'nats', server: RealServer, folder: string): Promise<FeedLog> => {
  if (kind === 'redis') return feedLog(folder);
  return jetStreamLog(await server.nats(), { name: 'market' });
};
