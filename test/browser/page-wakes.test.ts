import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { pageWakes$ } from '../../src/browser/page-wakes.js';
import { FakePage } from './fake-page.js';

describe('pageWakes$', () => {
  let page: FakePage;
  beforeEach(() => void (page = new FakePage()));
  afterEach(() => page.remove());

  it.each<[string, 'visible' | 'hidden', boolean]>([
    ['online', 'visible', true],
    ['online', 'hidden', true],
    ['pageshow', 'visible', true],
    ['visibilitychange', 'visible', true],
    ['visibilitychange', 'hidden', false],
    ['offline', 'visible', false],
    ['focus', 'visible', false],
  ])('on %s of a page that is %s emits: %p', (type, state, does) => {
    let emitted = 0;
    const subscription = pageWakes$.subscribe(() => (emitted += 1));
    page.document.visibilityState = state;
    page.dispatch(type);
    page.dispatch(type);
    subscription.unsubscribe();
    expect(emitted).toBe(does ? 2 : 0);
  });

  it('listens only while it is subscribed', () => {
    expect(page.listeners).toEqual([]);
    const subscription = pageWakes$.subscribe();
    expect(page.listeners.sort()).toEqual(['online', 'pageshow', 'visibilitychange']);
    subscription.unsubscribe();
    expect(page.listeners).toEqual([]);
  });

  it('emits nothing and does not error where there is no page', () => {
    page.remove();
    const seen: string[] = [];
    pageWakes$.subscribe({ next: () => seen.push('next'), error: () => seen.push('error') }).unsubscribe();
    expect(seen).toEqual([]);
  });
});
