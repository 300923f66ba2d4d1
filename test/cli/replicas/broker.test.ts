import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { access, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type Broker, type BrokerProgram, startBroker } from '../../../src/cli/replicas/broker.js';

const folders: string[] = [];
const open: Broker[] = [];
afterEach(async () => {
  for (const { close } of open.splice(0)) await close();
});

/** A Node program in place of a server. */
const nodeProgram = (protocol: string, code: (port: number, folder: string) => string): BrokerProgram => ({
  command: process.execPath,
  protocol,
  args: (port, folder) => {
    folders.push(folder);
    return ['-e', code(port, folder)];
  },
});

const missing: BrokerProgram = {
  command: 'no-such-program',
  protocol: 'nats',
  args: (_, folder) => {
    folders.push(folder);
    return [];
  },
};
const ends = nodeProgram('nats', () => 'process.exitCode = 1');
const listens = nodeProgram(
  'redis',
  (port, folder) =>
    `require('node:fs').writeFileSync(${JSON.stringify(folder)} + '/pid', String(process.pid)); require('node:net').createServer().listen(${port}, '127.0.0.1')`,
);

const start = async (...programs: readonly BrokerProgram[]): Promise<Broker | undefined> => {
  const broker = await startBroker(programs);
  if (broker) open.push(broker);
  return broker;
};
const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

describe('the server of demo --replicas', () => {
  it('is undefined if no program is installed, or if the program ends', async () => {
    expect(await start(missing)).toBeUndefined();
    expect(await start(ends)).toBeUndefined();
    for (const folder of folders.splice(0)) expect(await exists(folder)).toBe(false);
  });

  it('is nats-server or redis-server, if one of them is installed', async () => {
    const broker = await startBroker();
    if (broker) open.push(broker);
    expect(['nats-server', 'redis-server', undefined]).toContain(broker?.name);
    expect(broker?.url ?? 'redis://127.0.0.1:1').toMatch(/^(nats|redis):\/\/127\.0\.0\.1:\d+$/);
  });

  it('is the first program that accepts connections', async () => {
    const broker = await start(missing, listens, ends);
    expect(broker).toMatchObject({
      name: process.execPath,
      url: expect.stringMatching(/^redis:\/\/127\.0\.0\.1:\d+$/),
    });
    const socket = connect(Number(new URL(broker!.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });

  it('ends with its folder', async () => {
    folders.length = 0;
    const broker = await start(listens);
    const [folder = ''] = folders;
    const pid = Number(await readFile(join(folder, 'pid'), 'utf8'));
    await writeFile(join(folder, 'data'), 'x');
    await broker!.close();
    expect(await exists(folder)).toBe(false);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});
