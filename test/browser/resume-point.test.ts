import { describe, expect, it } from '@jest/globals';
import { resolveRelayFeed, type ResumeStore } from '../../src/browser/relay-feed-options.js';
import { resumePoint } from '../../src/browser/resume-point.js';

const url = 'http://localhost/feed';
const pointIn = (resumeIn?: ResumeStore) => resumePoint(resolveRelayFeed(url, { resumeIn }));

class Store implements ResumeStore {
  readonly items = new Map<string, string>();
  getItem = (key: string) => this.items.get(key) ?? null;
  setItem = (key: string, value: string) => void this.items.set(key, value);
}

describe('resumePoint', () => {
  it('returns undefined at first, then the last id', () => {
    const point = pointIn();
    expect(point.lastEventId()).toBeUndefined();
    point.reached('a');
    point.reached('b');
    expect(point.lastEventId()).toBe('b');
  });

  it('ignores a message without an id', () => {
    const point = pointIn();
    point.reached('a');
    point.reached('');
    expect(point.lastEventId()).toBe('a');
  });

  it('stores the id for each address', () => {
    const store = new Store();
    pointIn(store).reached('a');
    expect([...store.items]).toEqual([[`rx-trade-feed:${url}`, 'a']]);
    expect(pointIn(store).lastEventId()).toBe('a');
    expect(resumePoint(resolveRelayFeed(`${url}/raw`, { resumeIn: store })).lastEventId()).toBeUndefined();
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
    expect(point.lastEventId()).toBeUndefined();
    point.reached('a');
    expect(point.lastEventId()).toBe('a');
  });

  it('calls the methods of the store with the right `this`', () => {
    class Strict extends Store {
      override getItem = () => null;
      receiver: unknown;
    }
    const store = new Strict();
    store.setItem = function (this: unknown) {
      store.receiver = this;
    };
    pointIn(store).reached('a');
    expect(store.receiver).toBe(store);
  });
});
