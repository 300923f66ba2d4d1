import type { DestroyRef } from '@angular/core';
import { type Observable, ReplaySubject } from 'rxjs';

/**
 * Emits when a component, or whatever `destroyRef` stands for, is destroyed; to late subscribers as well, at once.
 *
 * `takeUntilDestroyed` throws for what is destroyed already, in Angular 20.0: a callback may outlive its component.
 *
 * @param outside - runs what follows from it outside Angular's zone
 */
export const whenDestroyed$ = (destroyRef: DestroyRef, outside: (work: () => void) => void): Observable<void> => {
  const destroyed$ = new ReplaySubject<void>(1);
  destroyRef.onDestroy(() => outside(() => destroyed$.next()));
  return destroyed$;
};
