import { Observable } from 'rxjs';

/** The part of a `LockManager` that this library uses. */
export interface Locks {
  request(
    name: string,
    options: { readonly signal: AbortSignal } | { readonly steal: true },
    callback: () => Promise<void> | undefined,
  ): Promise<unknown>;
}

/**
 * Requests a lock of the browser (Web Locks), and holds it until the subscription ends.
 *
 * Emits once, when the lock is granted. Completes when another tab has stolen it. Errors when the browser refuses locks to this page.
 *
 * @param steal - whether to take the lock from the tab that holds it
 */
export const tabLock$ = (locks: Locks, name: string, steal: boolean): Observable<void> =>
  new Observable((subscriber) => {
    const waiting = new AbortController();
    let isGranted = false;
    const granted = () => {
      // Unsubscribing does not abort a request that steals.
      if (subscriber.closed) return undefined;
      isGranted = true;
      const released = new Promise<void>((release) => subscriber.add(release));
      subscriber.next();
      return released;
    };
    locks
      .request(name, steal ? { steal } : { signal: waiting.signal }, granted)
      .catch((error: unknown) => (isGranted ? subscriber.complete() : subscriber.error(error)));
    subscriber.add(() => waiting.abort());
  });
