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
  it('knows no place at first, then the last one that was reached', () => {
    const point = pointIn();
    expect(point.lastEventId()).toBeUndefined();
    point.reached('a');
    point.reached('b');
    expect(point.lastEventId()).toBe('b');
  });

  it('stays where it is with a message that has no place', () => {
    const point = pointIn();
    point.reached('a');
    point.reached('');
    expect(point.lastEventId()).toBe('a');
  });

  it('remembers it in the store, for each address', () => {
    const store = new Store();
    pointIn(store).reached('a');
    expect([...store.items]).toEqual([[`rx-trade-feed:${url}`, 'a']]);
    expect(pointIn(store).lastEventId()).toBe('a');
    expect(resumePoint(resolveRelayFeed(`${url}/raw`, { resumeIn: store })).lastEventId()).toBeUndefined();
  });

  it('goes on without a store that throws', () => {
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

  it('calls the store as its methods', () => {
    class Strict extends Store {
      override getItem = () => null;
      asked: unknown;
    }
    const store = new Strict();
    store.setItem = function (this: unknown) {
      store.asked = this;
    };
    pointIn(store).reached('a');
    expect(store.asked).toBe(store);
  });
});
