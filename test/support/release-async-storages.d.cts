import type { AsyncLocalStorage } from 'node:async_hooks';

export declare const releaseAsyncStorages: (storageClass: {
  readonly prototype: Pick<AsyncLocalStorage<string>, 'run' | 'enterWith'>;
}) => () => void;
