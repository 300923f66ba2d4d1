import type { DestroyRef } from '@angular/core';
import { type Observable, ReplaySubject } from 'rxjs';

/**
 * Emits when the owner of `destroyRef`, such as a component, is destroyed. A late subscriber receives the value at once.
 *
 * `takeUntilDestroyed` of Angular 20.0 throws if the component is already destroyed, and a callback may run after that.
 *
 * @param outside - calls a function outside Angular's zone
 */
export const whenDestroyed$ = (destroyRef: DestroyRef, outside: (work: () => void) => void): Observable<void> => {
  const destroyed$ = new ReplaySubject<void>(1);
  destroyRef.onDestroy(() => outside(() => destroyed$.next()));
  return destroyed$;
};
