import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { asyncScheduler } from 'rxjs';
import { type Connect, connectSocket } from '../../src/transport/connect-socket.js';
import { spareSocket } from '../../src/transport/spare-socket.js';
import { certificateFor } from '../support/certificate.js';
import { closed } from '../support/feed.js';
import { type Fate, type Gate, portOf, startGate } from '../support/gate.js';
import { startWire } from '../support/wire.js';

const tls = await certificateFor();

/** Creates a spare socket with a clock that the test moves. Collects every socket that is opened. */
const createSpare = (connectTo: Connect = (url) => connectSocket(url, { ca: tls.cert })) => {
  const opened: Socket[] = [];
  const clock = { nowMs: 0 };
  const connect: Connect = (url) => {
    const socket = connectTo(url).on('error', () => undefined);
    opened.push(socket);
    return socket;
  };
  const timing = { random: () => 1, scheduler: asyncScheduler };
  const created = spareSocket(
    connect,
    timing,
    (thrown) => {
      throw thrown;
    },
    () => clock.nowMs,
  );
  return {
    ...created,
    opened,
    clock,
    [Symbol.asyncDispose]: async () => {
      created.drop();
      for (const socket of opened) await closed(socket.destroy());
    },
  };
};

const urlOf = ({ port }: Gate, scheme = 'wss') => new URL(`${scheme}://127.0.0.1:${port}/ws`);

/** Connects once, and opens a spare at 0 ms. */
const openSpare = async (gate: Gate, isReady: boolean) => {
  const spare = createSpare();
  spare.take(urlOf(gate));
  spare.open();
  if (isReady) await once(spare.opened[1] as Socket, 'secureConnect');
  return spare;
};
const startGates = async (second: (service: Fate) => Fate) => {
  const wire = await startWire({ tls });
  const service = { port: portOf(wire.wssUrl) };
  const gate = await startGate([service, second(service), service]);
  return {
    gate,
    [Symbol.asyncDispose]: async () => {
      await gate[Symbol.asyncDispose]();
      await wire[Symbol.asyncDispose]();
    },
  };
};

describe('spareSocket', () => {
  it.each([
    ['ready', true, 49_999, true],
    ['ready', true, 50_000, false],
    ['still connecting', false, 999, true],
    ['still connecting', false, 1_000, false],
  ])('returns a spare that is %s (%s) after %i ms: %s', async (_, isReady, ageMs, isReturned) => {
    await using gates = await startGates((service) => (isReady ? service : 'silence'));
    await using spare = await openSpare(gates.gate, isReady);
    spare.clock.nowMs = ageMs;
    const taken = spare.take(urlOf(gates.gate));
    expect(spare.opened.indexOf(taken)).toBe(isReturned ? 1 : 2);
    expect(spare.opened[1]?.destroyed).toBe(!isReturned);
  });

  it('returns it once, without listeners', async () => {
    await using gates = await startGates((service) => service);
    await using spare = await openSpare(gates.gate, true);
    const taken = spare.take(urlOf(gates.gate));
    await new Promise((resolve) => setImmediate(resolve));
    expect({ readable: taken.listenerCount('readable'), flowing: taken.readableFlowing }).toEqual({
      readable: 0,
      flowing: null,
    });
    expect(taken.listenerCount('close')).toBe(spare.opened[0]?.listenerCount('close'));
    expect(spare.take(urlOf(gates.gate))).not.toBe(taken);
    spare.drop();
    expect(taken.destroyed).toBe(false);
  });

  it('destroys a spare for another origin', async () => {
    await using gates = await startGates((service) => service);
    await using elsewhere = await startWire();
    await using spare = await openSpare(gates.gate, true);
    const taken = spare.take(new URL(elsewhere.wssUrl));
    expect(spare.opened.indexOf(taken)).toBe(2);
    expect(spare.opened[1]?.destroyed).toBe(true);
  });

  it('opens at most one, and none before the first connection', async () => {
    await using gates = await startGates((service) => service);
    await using spare = createSpare();
    spare.open();
    spare.standBy();
    expect(spare.opened).toHaveLength(0);
    spare.take(urlOf(gates.gate));
    spare.open();
    spare.open();
    expect(spare.opened).toHaveLength(2);
  });

  it('ignores that it cannot connect: the next connection throws', async () => {
    const refused = new Error('refused');
    let fails = false;
    await using gate = await startGate(['silence']);
    await using spare = createSpare((url) => {
      if (fails) throw refused;
      return connectSocket(url);
    });
    spare.take(urlOf(gate));
    fails = true;
    spare.open();
    expect(() => spare.take(urlOf(gate))).toThrow(refused);
  });

  it('handles the error of a connection that has no other listener', async () => {
    await using gate = await startGate(['silence', 'silence']);
    const opened: Socket[] = [];
    const connect: Connect = (url) => {
      const socket = connectSocket(url);
      opened.push(socket);
      return socket;
    };
    const spare = spareSocket(connect, { random: () => 1, scheduler: asyncScheduler }, () => undefined);
    spare.take(urlOf(gate, 'ws'));
    spare.open();
    expect(() => opened[1]?.emit('error', new Error('reset'))).not.toThrow();
    spare.drop();
    for (const socket of opened) await closed(socket.destroy());
  });

  it('waits until the current connection is closed', async () => {
    await using gates = await startGates((service) => service);
    await using spare = createSpare();
    const first = spare.take(urlOf(gates.gate));
    await once(first, 'secureConnect');
    for (const count of [2, 3]) {
      spare.standBy(first);
      first.destroy();
      while (spare.opened.length < count) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(spare.opened[1]?.destroyed).toBe(true);
  });
});
