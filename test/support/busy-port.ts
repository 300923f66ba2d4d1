import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { freePort } from './free-port.mjs';

// Listens with the shortest backlog, and accepts nothing before it's told to.
const program = `
const { createServer, connect } = require('node:net');
const { parentPort, workerData: { host, port, to, gate } } = require('node:worker_threads');
const server = createServer((client) => {
  const service = connect(to, '127.0.0.1');
  client.on('error', () => service.destroy()).pipe(service).on('error', () => client.destroy()).pipe(client);
});
server.listen({ port, host, backlog: 1 }, () => {
  parentPort.postMessage('listening');
  setImmediate(() => Atomics.wait(gate, 0, 0));
});`;

/**
 * A port that leads to another one on 127.0.0.1, but answers no connection until `open`: its backlog is full. Linux
 * then sends the SYN again after a second, so connecting takes that long.
 */
export const startBusyPort = async (to: number, host = '127.0.0.1', given?: number) => {
  const port = given ?? (await freePort());
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(program, { eval: true, workerData: { host, port, to, gate } });
  await once(worker, 'message');
  const fillers = [1, 2].map(() => connect(port, host).on('error', () => undefined));
  await Promise.all(fillers.map((each) => once(each, 'connect')));
  return {
    port,
    open: (): void => {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
    },
    [Symbol.asyncDispose]: async () => {
      for (const each of fillers) each.destroy();
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
      await worker.terminate();
    },
  };
};
