// A TCP proxy for the connections of one replica, or of all: it can refuse them, discard their bytes, and hold handshakes.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Starts a proxy. @param target - returns the port behind it */
export const startLink = async (target) => {
  const sockets = new Set();
  let mode = 'good';
  let hold;
  let held;

  const keep = (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    return socket;
  };

  const join = (client, first) => {
    const upstream = keep(connect(target(), '127.0.0.1'));
    upstream.setNoDelay(true);
    upstream.write(first);
    // In a black hole both directions discard their bytes.
    client.on('data', (chunk) => mode === 'good' && upstream.write(chunk));
    upstream.on('data', (chunk) => mode === 'good' && client.write(chunk));
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.destroy());
  };

  const server = createServer({ noDelay: true }, (client) => {
    keep(client);
    if (mode === 'refused') return client.resetAndDestroy();
    if (!hold) return join(client, Buffer.alloc(0));
    client.once('data', (first) => {
      if (!hold || first.subarray(0, 4).toString() !== 'GET ') return join(client, first);
      // The handshake arrives later, also if its sender has exited.
      hold = false;
      held = first;
      client.on('data', () => undefined);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: server.address().port,
    /** `good`, `refused` (connections are reset), or `black-hole` (they stay open, and nothing arrives). */
    set: (next) => {
      const before = mode;
      mode = next;
      // The bytes that a black hole has discarded are missing in the streams.
      if (next === 'refused' || before === 'black-hole') for (const socket of sockets) socket.resetAndDestroy();
    },
    /** Holds the next handshake. */
    hold: () => {
      hold = true;
      held = undefined;
    },
    get isHolding() {
      return held !== undefined;
    },
    /** Sends the handshake that was held. Its sender receives no answer. */
    release: () => keep(connect(target(), '127.0.0.1')).write(held),
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
};
