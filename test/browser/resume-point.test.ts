import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { ResumePoint, StreamClock } from '../../src/browser/resume-point.js';
import { Store } from './support.js';
import { resolveRelayFeed, type ResumeStore } from '../../src/browser/relay-feed-options.js';

describe('clock', () => {
  const hour = 3_600_000;

  /** A machine and a relay: real time passes on all clocks, each can be set, and the machine can sleep. */
  const machine = (wallOff = 0, relayOff = 0) => {
    let real = 1e12;
    let asleepMs = 0;
    const off = { wall: wallOff, relay: relayOff };
    const create = () =>
      new StreamClock(
        () => real + off.wall,
        () => real - asleepMs - 1e12,
      );
    const clock = create();
    return {
      clock,
      off,
      /** Creates the clock of another tab. */
      tab: create,
      pass: (ms: number) => (real += ms),
      sleep: (ms: number) => {
        real += ms;
        asleepMs += ms;
      },
      /** Connects over a network with these delays. Returns the time of an event that the relay sends then. */
      connect: (thereMs = 0, backMs = 0, of = clock): number => {
        const requestedAt = of.now();
        real += thereMs;
        const relayAt = real + off.relay;
        real += backMs;
        of.measure(requestedAt, relayAt);
        return real + off.relay + of.shiftMs;
      },
      wall: () => real + off.wall,
    };
  };

  describe('the time of a stream at its first connection', () => {
    it.each([
      ['a second ahead', 1_000, 0, 0, 0],
      ['more than a second ahead', 1_001, 0, 0, 1_001],
      ['two seconds ahead, over an equally slow network', 2_000, 2_000, 2_000, 0],
    ])('%s', (_what, ahead, thereMs, backMs, shiftMs) => {
      const { clock, connect } = machine(ahead);
      connect(thereMs, backMs);
      expect(clock.shiftMs).toBe(shiftMs);
    });

    it('is that of the relay, or of this machine to half of the round trip, for any asymmetry of the network', () => {
      const ms = (max: number) => fc.integer({ min: -max, max });
      fc.assert(
        fc.property(ms(1e9), fc.nat(20_000), fc.nat(20_000), (shift, there, back) => {
          const { clock, connect } = machine(shift);
          connect(there, back);
          const found = clock.shiftMs;
          if (found !== 0) expect(Math.abs(found - shift)).toBeLessThanOrEqual((there + back) / 2 + 1);
          if (Math.abs(shift) <= 1_000) expect(found).toBe(0);
          if (Math.abs(shift) > 1_001 + there + back) expect(found).not.toBe(0);
        }),
      );
    });
  });

  describe('the time of a stream at a later connection', () => {
    it.each<[string, (all: ReturnType<typeof machine>) => void, number]>([
      ['goes on when the clock of this machine is set back', ({ off }) => (off.wall -= hour), 0],
      [
        'includes the time that this machine slept before its clock was set back',
        ({ sleep, off }) => {
          sleep(8 * hour);
          off.wall -= hour;
        },
        8 * hour,
      ],
      ['goes on when the clock of the relay is set back', ({ off }) => (off.relay -= hour), 0],
      ['follows a replica whose clock is behind by up to 10 s', ({ off }) => (off.relay -= 9_000), -9_000],
      [
        'follows the relay when the clocks drift in a day',
        ({ pass, off }) => {
          pass(24 * hour);
          off.relay -= 15_000;
        },
        24 * hour - 15_000,
      ],
    ])('%s', (_what, change, passedMs) => {
      for (const wrongBy of [0, 2 * hour, -2 * hour]) {
        const all = machine(wrongBy);
        const before = all.connect(20, 20);
        change(all);
        const after = all.connect(20, 20);
        expect(Math.abs(after - before - passedMs)).toBeLessThan(100);
        // Where the relay lags, the clock waits for it.
        expect(all.clock.now()).toBeGreaterThanOrEqual(after - 100);
        expect(all.clock.now()).toBeLessThan(after + 15_100);
      }
    });

    it('does not run ahead of time when the connections alternate between two replicas whose clocks differ by a minute', () => {
      const all = machine();
      const first = all.connect();
      for (let n = 0; n < 20; n += 1) {
        all.off.relay = n % 2 === 0 ? 60_000 : 0;
        all.pass(1_000);
        expect(all.connect()).toBe(first + (n + 1) * 1_000);
      }
    });

    it('never goes back, whatever is set, and however long this machine sleeps', () => {
      const step = fc.record({
        passMs: fc.nat(100_000),
        sleepMs: fc.constantFrom(0, 0, 50_000, 8 * hour),
        wallMs: fc.constantFrom(0, 0, hour, -hour, 3_000),
        there: fc.nat(2_000),
      });
      fc.assert(
        fc.property(fc.integer({ min: -1e9, max: 1e9 }), fc.array(step, { maxLength: 20 }), (wrongBy, steps) => {
          const all = machine(wrongBy);
          let [latest, event] = [all.clock.now(), all.connect()];
          for (const { passMs, sleepMs, wallMs, there } of steps) {
            all.pass(passMs);
            all.sleep(sleepMs);
            all.off.wall += wallMs;
            const next = all.connect(there);
            // The relay's clock is right, so exactly the real time has passed.
            expect(next - event).toBe(passMs + sleepMs + there);
            expect(all.clock.now()).toBeGreaterThanOrEqual(latest);
            [latest, event] = [all.clock.now(), next];
          }
        }),
      );
    });

    it.each([hour, -hour])('is that of the leader in a tab that was opened after the clock was set by %d ms', (ms) => {
      const all = machine(5_000);
      const before = all.connect();
      all.off.wall += ms;
      const tab = all.tab();
      expect(tab.now()).toBe(all.wall());
      tab.follow(all.clock.shiftMs, all.clock.aheadMs);
      expect(tab.now()).toBe(all.clock.now());
      all.pass(1_000);
      expect(all.connect(0, 0, tab)).toBe(before + 1_000);
      // A message that arrives late changes nothing.
      const { shiftMs, aheadMs } = all.clock;
      all.pass(60_000);
      tab.follow(shiftMs, aheadMs);
      expect(tab.now()).toBe(all.clock.now());
    });
  });
});

const url = 'http://localhost/feed';
const pointIn = (resumeIn?: ResumeStore) => new ResumePoint(resolveRelayFeed(url, { resumeIn }));

describe('ResumePoint', () => {
  it('has no id at first, then that of the last message with one, which is stored for its address', () => {
    const store = new Store();
    const point = pointIn(store);
    expect(point.id).toBeUndefined();
    for (const id of ['a', 'b', '']) point.reached(id, []);
    expect(point.id).toBe('b');
    expect([...store.items]).toEqual([[`rx-trade-feed:${url}`, 'b']]);
    expect(pointIn(store).id).toBe('b');
    expect(new ResumePoint(resolveRelayFeed(`${url}/raw`, { resumeIn: store })).id).toBeUndefined();
  });

  it('ignores a stored id that no header can have', () => {
    expect(pointIn(new Store([[`rx-trade-feed:${url}`, 'a\nb']])).id).toBeUndefined();
  });

  it('works without a store that throws', () => {
    const point = pointIn({
      getItem: () => {
        throw new Error('SecurityError');
      },
      setItem: () => {
        throw new Error('QuotaExceededError');
      },
    });
    expect(point.id).toBeUndefined();
    point.reached('a', []);
    expect(point.id).toBe('a');
  });
});
