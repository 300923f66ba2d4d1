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

/** A room for a spare connection, with a clock that the test moves, and every socket that was made. */
const room = (connectTo: Connect = (url) => connectSocket(url, { ca: tls.cert })) => {
  const made: Socket[] = [];
  const clock = { nowMs: 0 };
  const connect: Connect = (url) => {
    const socket = connectTo(url).on('error', () => undefined);
    made.push(socket);
    return socket;
  };
  const spare = spareSocket(connect, { random: () => 1, scheduler: asyncScheduler }, () => clock.nowMs);
  return {
    ...spare,
    made,
    clock,
    [Symbol.asyncDispose]: async () => {
      spare.drop();
      for (const socket of made) await closed(socket.destroy());
    },
  };
};

const urlOf = ({ port }: Gate) => new URL(`wss://127.0.0.1:${port}/ws`);

/** A room that has connected once, and holds a spare since 0 ms, which meets this fate. */
const holding = async (gate: Gate, isReady: boolean) => {
  const holder = room();
  holder.take(urlOf(gate));
  holder.open();
  if (isReady) await once(holder.made[1] as Socket, 'secureConnect');
  return holder;
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
    ['in the making', false, 999, true],
    ['in the making', false, 1_000, false],
  ])('gives one that is %s (%s) after %i ms: %s', async (_, isReady, ageMs, isGiven) => {
    await using gates = await startGates((service) => (isReady ? service : 'silence'));
    await using holder = await holding(gates.gate, isReady);
    holder.clock.nowMs = ageMs;
    const taken = holder.take(urlOf(gates.gate));
    expect(holder.made.indexOf(taken)).toBe(isGiven ? 1 : 2);
    expect(holder.made[1]?.destroyed).toBe(!isGiven);
  });

  it('gives it once, with nothing of its own left on it', async () => {
    await using gates = await startGates((service) => service);
    await using holder = await holding(gates.gate, true);
    const taken = holder.take(urlOf(gates.gate));
    await new Promise((resolve) => setImmediate(resolve));
    expect({ readable: taken.listenerCount('readable'), flowing: taken.readableFlowing }).toEqual({
      readable: 0,
      flowing: null,
    });
    expect(holder.take(urlOf(gates.gate))).not.toBe(taken);
    holder.drop();
    expect(taken.destroyed).toBe(false);
  });

  it('destroys one that leads elsewhere', async () => {
    await using gates = await startGates((service) => service);
    await using elsewhere = await startWire();
    await using holder = await holding(gates.gate, true);
    const taken = holder.take(new URL(elsewhere.wssUrl));
    expect(holder.made.indexOf(taken)).toBe(2);
    expect(holder.made[1]?.destroyed).toBe(true);
  });

  it('holds one at the most, and none before anything was connected to', async () => {
    await using gates = await startGates((service) => service);
    await using holder = room();
    holder.open();
    holder.standBy();
    expect(holder.made).toHaveLength(0);
    holder.take(urlOf(gates.gate));
    holder.open();
    holder.open();
    expect(holder.made).toHaveLength(2);
  });

  it('keeps to itself that it cannot connect at all: whoever connects is told', async () => {
    const refused = new Error('refused');
    let fails = false;
    await using gate = await startGate(['silence']);
    await using holder = room((url) => {
      if (fails) throw refused;
      return connectSocket(url);
    });
    holder.take(urlOf(gate));
    fails = true;
    holder.open();
    expect(() => holder.take(urlOf(gate))).toThrow(refused);
  });

  it('waits for the end of a connection that serves as well, if that has not come yet', async () => {
    await using gates = await startGates((service) => service);
    await using holder = room();
    const first = holder.take(urlOf(gates.gate));
    await once(first, 'secureConnect');
    for (const made of [2, 3]) {
      holder.standBy(first);
      first.destroy();
      while (holder.made.length < made) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(holder.made[1]?.destroyed).toBe(true);
  });
});
