import { throwError } from 'rxjs';

/** Hands an error that no channel is left for to RxJS: to `config.onUnhandledError`, or else it is thrown in a task of its own. */
export const reportUnhandled = (error: unknown): void => {
  throwError(() => error).subscribe();
};
