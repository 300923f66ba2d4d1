// The processes of the benchmark: a NATS server, and replicas.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Starts `nats-server` on a free port. */
export const startNats = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-cluster-'));
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  const server = spawn('nats-server', ['-a', '127.0.0.1', '-p', `${port}`, '-js', '-sd', folder], { stdio: 'ignore' });
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) break;
    if (server.exitCode !== null) throw new Error('nats-server has ended');
    await delay(20);
  }
  return {
    port,
    /** The CPU time of the server so far, in ns. The kernel counts in ticks of 10 ms. */
    cpuNs: () => {
      const fields = readFileSync(`/proc/${server.pid}/stat`, 'utf8').split(') ')[1].split(' ');
      return (Number(fields[11]) + Number(fields[12])) * 1e7;
    },
    stop: async () => {
      const ended = once(server, 'close');
      server.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** Starts a replica. */
export const startReplica = (port, name, env) => {
  const child = fork(new URL('replica.mjs', import.meta.url), [`${port}`, name], { env: { ...process.env, ...env } });
  const messages = [];
  let role;
  let changed = () => undefined;
  child.on('message', (message) => {
    if (message.type === 'role') ({ role } = message);
    messages.push(message);
    changed();
  });
  const until = async (is) => {
    for (let found = is(); ; found = is()) {
      if (found) return found;
      await new Promise((resolve) => (changed = resolve));
    }
  };
  return {
    name,
    child,
    isOwner: () => role === 'owning',
    send: (message) => child.send(message),
    /** Waits for the `opened` after the first `count`. */
    opened: (count = 0) => until(() => messages.filter(({ type }) => type === 'opened')[count]),
    openings: () => messages.filter(({ type }) => type === 'opened').length,
    report: async () => {
      const before = messages.filter(({ type }) => type === 'report').length;
      child.send('report');
      return until(() => messages.filter(({ type }) => type === 'report')[before]);
    },
    kill: async (signal = 'SIGKILL') => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill(signal);
      await ended;
    },
  };
};
